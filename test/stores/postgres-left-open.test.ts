/** A pool shared with an app that releases clients inside a transaction. */
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

/** Releases a client without ending its transaction. */
async function leaveOpen(...statements: string[]): Promise<void> {
  const client = await pool.connect()
  for (const statement of ['begin', ...statements]) await client.query(statement).catch(() => {})
  client.release()
}

/** A pool of an older driver, whose clients do not expose the transaction status. */
function olderDriver(): PgPool {
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
  [', with a driver that says nothing of transactions', olderDriver],
]

describe.each(DRIVERS)('a connection that was released inside a transaction%s', (_, driver) => {
  let store: Store

  beforeEach(() => {
    store = storeOn(driver())
  })

  it('is not written to, and the error says to look for the `begin`', async () => {
    await leaveOpen('select 1')
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject(LEFT)
    expect(await runsSeen()).toBe(0)
  })

  it('is closed, so the next call gets another one', async () => {
    await leaveOpen()
    await expect(store.now()).rejects.toMatchObject(LEFT)
    await store.runs.enqueue([newRun()])
    expect(await runsSeen()).toBe(1)
  })

  it('is distinguished from one whose transaction has ended', async () => {
    await leaveOpen('select 1', 'commit')
    await leaveOpen('no such statement', 'rollback')
    await store.runs.enqueue([newRun()])
    expect(await runsSeen()).toBe(1)
  })

  it('is recognised also when the transaction has failed', async () => {
    await leaveOpen('no such statement')
    await expect(store.runs.enqueue([newRun()])).rejects.toMatchObject(LEFT)
    await store.runs.enqueue([newRun()])
    expect(await runsSeen()).toBe(1)
  })

  it('is not used for operations in a transaction either', async () => {
    await leaveOpen('no such statement')
    const request = { limit: 1, lookaheadMs: 0, plan: () => ({ ticks: [], skips: [], cursor: 0 }) }
    await expect(store.schedules.advance(request as never)).rejects.toMatchObject(LEFT)
    expect(await store.schedules.advance(request as never)).toMatchObject({ schedules: 0 })
  })
})

it('a statement that the server refuses does not close the connection', async () => {
  const store = storeOn(pool)
  const pid = async () => (await pool.query('select pg_backend_pid() as pid')).rows[0].pid
  const before = await pid()
  await expect(store.runs.list({ limit: 1, key: '\0' } as never)).rejects.toThrow()
  expect(await pid()).toBe(before)
})
