/**
 * The `tx` that the callback of `transaction()` gets: a guarded client of its transaction.
 *
 * - **`begin`, `commit` and `rollback` are refused** before they are sent. A hidden one (in a procedure, say) is
 *   detected at the commit, because the transaction's number has changed.
 * - **After the callback has ended, every statement is refused**: the pool may have given the client to another caller.
 * - **`release` and `end` do nothing**: libraries call them on clients that they were given.
 */
import { failure, quote } from '../../../core/errors.js'
import type { PgClient, PgPool } from '../connection/driver.js'
import { sqlState } from '../connection/errors.js'
import { singleClientPool, withMembers } from './single-client-pool.js'
import { statementText, transactionStatements } from './transaction-statements.js'

/** A handler's transaction. Name the types of your driver to pass the client on: `PostgresTransaction<PoolClient>`. */
export interface PostgresTransaction<Client = unknown, Pool = unknown> {
  query<Row = Record<string, unknown>>(
    sql: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>
  /** The client of `pg`, for libraries that take one. */
  readonly client: Client
  /** The same as a pool of one client, for libraries that take a pool: transactions that they begin are savepoints. */
  readonly pool: Pool
}

/** The members of a `TransactionConnection` that are used here. */
interface Connection {
  readonly client: PgClient
  readonly over: Promise<void>
  sent(): () => void
}

interface Queryable {
  query(...args: readonly unknown[]): unknown
}

/** The SQLSTATE of a statement that fails only because an earlier one in its transaction has failed. */
const IN_FAILED_TRANSACTION = '25P02'

export class HandlerClient {
  readonly tx: PostgresTransaction
  readonly #client: Queryable
  readonly #connection: Connection
  #isOpen = true
  #problem: unknown

  constructor(pool: PgPool, connection: Connection) {
    this.#client = connection.client
    this.#connection = connection
    const query = (...args: readonly unknown[]) => this.#query(args)
    this.tx = {
      query: query as PostgresTransaction['query'],
      client: withMembers(connection.client, { query, release: () => {}, end: async () => {} }),
      pool: singleClientPool(pool, connection.client, (args) => this.#query(args), connection.over),
    }
  }

  /** The error of the last statement that failed for a reason of its own. */
  get problem(): unknown {
    return this.#problem
  }

  /** Called when the callback has ended. */
  close(): void {
    this.#isOpen = false
  }

  /** Takes all forms of a query that `pg` takes: a text or an object, answered by a promise, a callback or a cursor. */
  #query(args: readonly unknown[]): unknown {
    const refusal = this.#refusal(statementText(args[0]))
    const callback = args.at(-1)
    if (typeof callback !== 'function') {
      if (refusal !== undefined) return refuse(args[0], refusal)
      const answer = this.#client.query(...args)
      // A cursor is not watched, because it gets no answer before the callback reads from it.
      if (answer instanceof Promise) answer.catch(this.#note).finally(this.#connection.sent())
      return answer
    }
    if (refusal !== undefined) return queueMicrotask(() => callback(refusal))
    const answered = this.#connection.sent()
    return this.#client.query(...args.slice(0, -1), (error: unknown, result: unknown) => {
      answered()
      if (error) this.#note(error)
      callback(error, result)
    })
  }

  readonly #note = (error: unknown): void => {
    if (sqlState(error) !== IN_FAILED_TRANSACTION) this.#problem = error
  }

  #refusal(sql: string): Error | undefined {
    if (!this.#isOpen) {
      return failure('OPTION_INVALID', 'transaction(): its callback has ended, and with it the use of `tx`')
    }
    const [statement] = transactionStatements(sql)
    if (statement === undefined) return undefined
    return failure(
      'OPTION_INVALID',
      `transaction(): the callback is inside a transaction that Belfry begins and ends, so ${quote(statement)} is refused; use a savepoint, or throw to roll back`,
    )
  }
}

/** Refuses as `pg` would: throws for a query object with a `submit`, such as a cursor, and rejects otherwise. */
function refuse(query: unknown, refusal: Error): Promise<never> {
  if (typeof (query as { readonly submit?: unknown } | null | undefined)?.submit === 'function') throw refusal
  return Promise.reject(refusal)
}
