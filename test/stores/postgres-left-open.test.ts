/** A pool that is shared with an app which gives clients back in the middle of a transaction. */
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { type PgClient, type PgPool, postgres } from '../../src/stores/postgres/index.js'
import { newRun } from '../../src/testing/contract/scene.js'
import { type FreshPostgres, freshPostgres } from '../servers/fresh-postgres.js'

let fresh: FreshPostgres
let pool: pg.Pool

beforeEach(async () => {
  fresh = await freshPostgres()
  pool = new pg.Pool({ connectionString: fresh.direct, max: 1 })
})

afterEach(async () => {
  await pool.end()
  await fresh.store.close()
  await fresh.close()
})

const storeOn = (pool: PgPool) => postgres({ pool, schema: fresh.schema, listen: false })

/** What an app does that forgets to end a transaction. */
async function leaveOpen(...statements: string[]): Promise<void> {
  const client = await pool.connect()
  for (const statement of ['begin', ...statements]) await client.query(statement).catch(() => {})
  client.release()
}

/** A driver from before clients said what becomes of their transaction. */
function silent(): PgPool {
  const connect = async () => {
    const client = await pool.connect()
    const get = (_: unknown, name: string | symbol) => {
      if (name === 'getTransactionStatus') return undefined
      const member: unknown = Reflect.get(client, name, client)
      return typeof member === 'function' ? member.bind(client) : member
    }
    known.set(client, known.get(client) ?? new Proxy<PgClient>(client as unknown as PgClient, { get }))
    return known.get(client) as PgClient
  }
  const known = new WeakMap<object, PgClient>()
  return { connect, on: pool.on.bind(pool), removeListener: pool.removeListener.bind(pool), end: () => pool.end() }
}

const LEFT = { code: 'STORE_INVALID', message: /a transaction was still open.* look for a `begin` in the app/ }

async function runsSeen(): Promise<number> {
  const { items } = await fresh.store.runs.list({ limit: 10 })
  return items.length
}

const DRIVERS: readonly (readonly [string, () => PgPool])[] = [
  ['', () => pool],
  [', with a driver that says nothing of transactions', silent],
]

describe.each(DRIVERS)('a connection that was given back in the middle of a transaction%s', (_, driver) => {
  let store: Store

  beforeEach(() => {
    store = storeOn(driver())
  })

  it('is not written to, and the app is told to look for its begin', async () => {
    await leaveOpen('select 1')
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject(LEFT)
    expect(await runsSeen()).toBe(0)
  })

  it('is closed, so that the next call finds a good one', async () => {
    await leaveOpen()
    await expect(store.now()).rejects.toMatchObject(LEFT)
    await store.runs.enqueue([newRun()])
    expect(await runsSeen()).toBe(1)
  })

  it('is told apart from one whose transaction was ended', async () => {
    await leaveOpen('select 1', 'commit')
    await leaveOpen('no such statement', 'rollback')
    await store.runs.enqueue([newRun()])
    expect(await runsSeen()).toBe(1)
  })

  it('is known too when the transaction has failed', async () => {
    await leaveOpen('no such statement')
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject(LEFT)
    await store.runs.enqueue([newRun()])
    expect(await runsSeen()).toBe(1)
  })

  it('is no connection for what needs a transaction either', async () => {
    await leaveOpen('no such statement')
    const request = { limit: 1, lookaheadMs: 0, plan: () => ({ ticks: [], skips: [], cursor: 0 }) }
    await expect(store.schedules.advance(request as never)).rejects.toMatchObject(LEFT)
    expect(await store.schedules.advance(request as never)).toMatchObject({ schedules: 0 })
  })
})

it('a statement that the server refuses costs no connection', async () => {
  const store = storeOn(pool)
  const pid = async () => (await pool.query('select pg_backend_pid() as pid')).rows[0].pid
  const before = await pid()
  await expect(store.runs.list({ limit: 1, key: '\0' } as never)).rejects.toThrow()
  expect(await pid()).toBe(before)
})
