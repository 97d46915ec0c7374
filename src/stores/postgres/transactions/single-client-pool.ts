/**
 * The client of a handler's transaction as a pool, for libraries that take a pool.
 *
 * The pool has one client. A library that connects keeps it until it releases it, and other callers wait. A transaction
 * that a library begins becomes a savepoint in the handler's transaction:
 *
 *     begin      savepoint belfry_1
 *     begin      savepoint belfry_2
 *     rollback   rollback to savepoint belfry_2
 *     commit     release savepoint belfry_1
 */
import type { PgClient, PgPool } from '../connection/driver.js'
import { onlyStatement, statementText } from './transaction-statements.js'

/** Sends a statement, given in any form that `pg` takes. */
type Send = (args: readonly unknown[]) => unknown

const BEGIN = /^(?:begin(?: work| transaction)?|start transaction)$/i
const COMMIT = /^(?:commit|end)(?: work| transaction)?$/i
const ROLLBACK = /^(?:rollback|abort)(?: work| transaction)?$/i

/**
 * `over` resolves when the transaction's connection is lost or given back. Waiting callers then go on, and their
 * statements fail.
 */
export function singleClientPool(pool: PgPool, client: PgClient, send: Send, over: Promise<void>): PgPool {
  let last: Promise<void> = Promise.resolve()
  /** Waits for the client. Returns a function that passes it to the next caller. */
  async function take(): Promise<() => void> {
    const before = last
    let release = () => {}
    last = new Promise((resolve) => {
      release = resolve
    })
    await Promise.race([before, over])
    return release
  }

  const connect = async () => savepointClient(client, send, await take())
  const query = async (...args: readonly unknown[]) => {
    const release = await take()
    try {
      return await send(args)
    } finally {
      release()
    }
  }
  const ignore = () => self
  const events = { on: ignore, once: ignore, off: ignore, addListener: ignore, removeListener: ignore }
  const self = withMembers(pool, { connect, query: withCallback(query), end: async () => {}, ...events })
  return self
}

function savepointClient(client: PgClient, send: Send, onRelease: () => void): PgClient {
  let depth = 0
  async function endSavepoint(command: 'release' | 'rollback to'): Promise<unknown> {
    const answer = await send([`${command} savepoint belfry_${depth}`])
    depth -= 1
    return answer
  }
  function query(...args: readonly unknown[]): unknown {
    const text = onlyStatement(statementText(args[0])) ?? ''
    if (BEGIN.test(text)) {
      depth += 1
      return withCallback(async () => send([`savepoint belfry_${depth}`]))(...args)
    }
    if (depth > 0 && COMMIT.test(text)) return withCallback(() => endSavepoint('release'))(...args)
    if (depth > 0 && ROLLBACK.test(text)) return withCallback(() => endSavepoint('rollback to'))(...args)
    return send(args)
  }
  function release(): void {
    // A transaction that the library has left open is rolled back.
    if (depth > 0) Promise.resolve(send(['rollback to savepoint belfry_1'])).catch(() => {})
    depth = 0
    onRelease()
  }
  return withMembers(client, { query, release, end: async () => {} })
}

/** Lets `query` also take a callback as its last argument. */
function withCallback(query: (...args: readonly unknown[]) => Promise<unknown>) {
  return (...args: readonly unknown[]): unknown => {
    const callback = args.at(-1)
    if (typeof callback !== 'function') return query(...args)
    return void query(...args.slice(0, -1)).then(
      (result) => callback(null, result),
      (error) => callback(error),
    )
  }
}

/** The object with some of its members replaced. It passes `instanceof` like the original. */
export function withMembers<Target extends object>(target: Target, members: Readonly<Record<string, unknown>>): Target {
  return new Proxy(target, {
    get(_, name) {
      if (typeof name === 'string' && Object.hasOwn(members, name)) return members[name]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' && name !== 'constructor' ? value.bind(target) : value
    },
  })
}
