import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { newRun } from '../../src/testing/contract/scene.js'
import { freshPostgres } from '../servers/fresh-postgres.js'

const pool = new pg.Pool()

afterAll(() => pool.end())

describe('postgres() refuses options', () => {
  it.each<[string, unknown, RegExp]>([
    ['that do not exist', { pool, retries: 3 }, /"retries" is not an option; known are pool, url/],
    ['that are misspelt', { pool, lisen: true }, /"lisen" is not an option; did you mean "listen"\?/],
    ['that are not an object', 'postgres://localhost', /options must be an object/],
    ['without a place', {}, /needs either a pool or a url/],
    ['with both a pool and a URL', { pool, url: 'postgres://localhost' }, /needs either a pool or a url/],
    ['with a URL that is none', { url: 'nonsense' }, /url must be a URL like postgres:\/\/.*, and is "nonsense"/],
    ['with a URL of another scheme', { url: 'https://example.com' }, /url must be a URL like postgres:/],
    ['with a URL that cannot be read', { url: 'postgres://host:port/db' }, /url must be a URL like postgres:/],
    ['with an empty URL', { url: '' }, /url must be a URL like postgres:.*, and is ""/],
    ['with a number for a URL', { url: 5432 }, /url must be a URL like postgres:.*, and is "5432"/],
    ['with nonsense for the direct URL', { pool, direct: 'nonsense' }, /direct must be a URL like postgres:/],
    ['with a pool that is none', { pool: 'postgres://localhost' }, /pool is no pool of `pg`/],
    ['with a liveness that there is none', { pool, liveness: 'pulse' }, /liveness is "pulse": allowed are/],
    ['with a word for a switch', { pool, migrate: 'yes' }, /migrate is "yes"; it must be true or false/],
    ['with a schema that needs quotes', { pool, schema: 'My Jobs' }, /schema "My Jobs" is not allowed/],
  ])('%s', (_, options, message) => {
    expect(() => postgres(options as never)).toThrow(message)
  })

  it('without showing a password', () => {
    const url = 'postgres://me:secret@host:port/db'
    expect(() => postgres({ url })).toThrow(/^(?!.*secret)/)
  })

  it('of migratePostgres() too', async () => {
    await expect(migratePostgres({ pool, dry: true } as never)).rejects.toThrow(/"dry" is not an option/)
    await expect(migratePostgres({ url: 'nonsense' })).rejects.toThrow(/migratePostgres\(\): url must be a URL/)
  })

  it.each([
    'postgresql://localhost',
    'postgres:///jobs?host=/var/run/postgresql',
    'postgres://%2Fvar%2Frun%2Fpostgresql/jobs',
    'postgres://me:100%@localhost/jobs',
    'socket:/var/run/postgresql?db=jobs',
    '/var/run/postgresql jobs',
  ])('but options of the driver are accepted: %s', async (url) => {
    await postgres({ url }).close()
  })
})

it('more than 10,000 runs in one call are refused, and nothing is enqueued', async () => {
  const { store, close, direct } = await freshPostgres()
  const runs = Array.from({ length: 10_001 }, (_, at) => newRun({ dedupe: String(at) }))
  const refusal = { code: 'OPTION_INVALID', message: /10001 runs at once are too many .* at most 10000 in one call/ }
  await expect(store.runs.enqueue(runs)).rejects.toMatchObject(refusal)
  const client = new pg.Client({ connectionString: direct })
  await client.connect()
  await client.query('begin')
  await expect(store.runs.enqueue(runs, client)).rejects.toMatchObject(refusal)
  await client.end()
  expect(await store.runs.enqueue(runs.slice(1))).toHaveLength(10_000)
  expect((await store.runs.list({ limit: 1 })).items).toHaveLength(1)
  await store.close()
  await close()
})
