/**
 * The client of a handler's transaction as a pool that has no other, for libraries that take a pool.
 *
 * Whoever connects has it until it is released, as in any pool. A transaction that a library begins on it becomes a
 * savepoint in the handler's: its commit keeps what was written for now, and its rollback undoes just that.
 */
import type { PgClient, PgPool } from '../connection/driver.js'
import { standIn, statementText } from './stand-in.js'
import { onlyStatement } from './transaction-statements.js'

/** Sends a statement, in whatever form it was given. */
type Send = (args: readonly unknown[]) => unknown

const BEGIN = /^(?:begin(?: work| transaction)?|start transaction)$/i
const COMMIT = /^(?:commit|end)(?: work| transaction)?$/i
const ROLLBACK = /^(?:rollback|abort)(?: work| transaction)?$/i

export function poolOfOne(pool: PgPool, client: PgClient, send: Send, over: Promise<void>): PgPool {
  const turns = new Turns(over)
  const connect = async () => nestingClient(client, send, await turns.take())
  const query = async (...args: readonly unknown[]) => {
    const release = await turns.take()
    try {
      return await send(args)
    } finally {
      release()
    }
  }
  const ignore = () => one
  const events = { on: ignore, once: ignore, off: ignore, addListener: ignore, removeListener: ignore }
  const one = standIn(pool, { connect, query: withCallback(query), end: async () => {}, ...events })
  return one
}

function nestingClient(client: PgClient, send: Send, done: () => void): PgClient {
  let depth = 0
  const savepoint = () => `savepoint belfry_${depth}`
  async function nested(...args: readonly unknown[]): Promise<unknown> {
    const text = onlyStatement(statementText(args[0])) ?? ''
    if (BEGIN.test(text)) {
      depth += 1
      return send([savepoint()])
    }
    if (COMMIT.test(text)) {
      const answer = await send([`release ${savepoint()}`])
      depth -= 1
      return answer
    }
    const answer = send([`rollback to ${savepoint()}`])
    depth -= 1
    return answer
  }
  function query(...args: readonly unknown[]): unknown {
    const text = onlyStatement(statementText(args[0])) ?? ''
    const nests = BEGIN.test(text) || (depth > 0 && (COMMIT.test(text) || ROLLBACK.test(text)))
    return nests ? withCallback(nested)(...args) : send(args)
  }
  function release(): void {
    // What was begun and never ended has not happened.
    if (depth > 0) Promise.resolve(send(['rollback to savepoint belfry_1'])).catch(() => {})
    depth = 0
    done()
  }
  return standIn(client, { query, release, end: async () => {} })
}

/** Answers by a callback, too, where one was given. */
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

/** One after the other, until all is over: then nobody has to wait for what fails anyway. */
class Turns {
  readonly #over: Promise<void>
  #last: Promise<void> = Promise.resolve()

  constructor(over: Promise<void>) {
    this.#over = over
  }

  /** Resolves when it is one's turn, with what ends it. */
  async take(): Promise<() => void> {
    const before = this.#last
    let end = () => {}
    this.#last = new Promise((resolve) => {
      end = resolve
    })
    await Promise.race([before, this.#over])
    return end
  }
}
