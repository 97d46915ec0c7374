import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { key } from '../../src/testing/contract/scene.js'
import { gate, transactionScene } from './transaction-scene.js'

const run = { target: { job: 'work' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' } as const

let at: Awaited<ReturnType<typeof transactionScene>>
let client: pg.Client

beforeEach(async () => {
  at = await transactionScene()
  client = new pg.Client({ connectionString: at.direct })
  await client.connect()
})

afterEach(async () => {
  await client.end()
  await at.close()
})

const enqueue = (tx: unknown, over = {}) => at.scene.store.runs.enqueue([{ ...run, ...over }], tx)

it('a job takes the caller’s transaction, for one run and for many', async () => {
  const belfry = createBelfry({ store: postgres({ url: at.direct, schema: at.schema }) })
  const job = belfry.job<number>('count', { run: ({ payload }) => payload })
  await belfry.start()
  await client.query('begin')
  const { run: one } = await job.enqueue(1, { tx: client, key: 'one' })
  const many = await job.enqueueMany([{ payload: 2 }, { payload: 3, key: 'one' }], { tx: client })
  expect(many).toEqual([
    { outcome: 'enqueued', run: expect.any(String) },
    { outcome: 'duplicate', run: one },
  ])
  expect(await belfry.runs.get(one)).toBeUndefined()
  await client.query('commit')
  await expect.poll(() => at.scene.stateOf(one)).toBe('succeeded')
  await expect.poll(() => at.scene.stateOf(many[0]?.run ?? '')).toBe('succeeded')
  await belfry.stop()
})

it('the hint arrives when the run can be seen, also in the process that enqueued it', async () => {
  const heard: string[] = []
  at.scene.store.subscribe((wake) => heard.push(wake))
  await client.query('begin')
  await enqueue(client)
  await client.query('select pg_sleep(0.1)')
  expect(heard).toEqual([])
  await client.query('commit')
  await expect.poll(() => heard).toEqual(['runs'])
})

it('anything but an open transaction is refused, and no run is created', async () => {
  const refused = { code: 'OPTION_INVALID' }
  for (const tx of [{}, null, 1, 'tx', { query: {} }]) await expect(enqueue(tx)).rejects.toMatchObject(refused)
  await expect(enqueue(client)).rejects.toMatchObject({ ...refused, message: /no transaction open/ })
  await expect(enqueue(at.table.pool)).rejects.toMatchObject({ ...refused, message: /no transaction open/ })
  expect((await at.scene.store.runs.list({ limit: 10 })).items).toEqual([])
  await client.query('begin')
  expect(await at.scene.store.runs.enqueue([], client)).toEqual([])
  await client.query('commit')
})

it('a transaction on a database without the store’s tables is refused', async () => {
  await client.query('begin')
  const store = postgres({ pool: at.table.pool, schema: 'elsewhere', listen: false })
  const refused = { code: 'OPTION_INVALID', message: /"elsewhere"/, cause: { code: '3F000' } }
  await expect(store.runs.enqueue([run], client)).rejects.toMatchObject(refused)
  await client.query('rollback')
})

it('no connection of the pool is needed, so the caller may hold the last one', async () => {
  const pool = new pg.Pool({ connectionString: at.direct, max: 1 })
  const store = postgres({ pool, schema: at.schema, listen: false })
  const last = await pool.connect()
  await last.query('begin')
  expect(await store.runs.enqueue([run], last)).toMatchObject([{ outcome: 'enqueued' }])
  await last.query('commit')
  last.release()
  await pool.end()
})

it('two transactions with the same key: the second waits for the first, and is refused only if that commits', async () => {
  for (const end of ['rollback', 'commit']) {
    const [other, began] = [new pg.Client({ connectionString: at.direct }), gate()]
    await other.connect()
    await client.query('begin')
    await enqueue(client, { dedupe: 'same' })
    await other.query('begin')
    const second = enqueue({ query: other.query.bind(other) }, { dedupe: 'same' }).finally(began.open)
    await client.query(end)
    await began.opened
    expect(await second).toMatchObject([{ outcome: end === 'commit' ? 'duplicate' : 'enqueued' }])
    await other.query('rollback')
    await other.end()
  }
})

it('a run with `checkKey` needs read committed, to see what other transactions have committed', async () => {
  for (const level of ['repeatable read', 'serializable']) {
    await client.query(`begin isolation level ${level}`)
    const checked = enqueue(client, { key: key('k'), checkKey: true })
    await expect(checked).rejects.toMatchObject({ code: 'OPTION_INVALID', message: /read committed/ })
    expect(await enqueue(client, { dedupe: level })).toMatchObject([{ outcome: 'enqueued' }])
    await client.query('commit')
  }
  await client.query('begin')
  expect(await enqueue(client, { key: key('k'), checkKey: true })).toMatchObject([{ outcome: 'enqueued' }])
  expect(await enqueue(client, { key: key('k'), checkKey: true })).toMatchObject([{ outcome: 'busy' }])
  await client.query('commit')
})
