/**
 * What the callback of `transaction()` works with: the client that its transaction is open on, for as long as it is.
 *
 * - A statement that would begin or end a transaction is refused before it is sent. What slips through is noticed by the
 *   transaction's number when it is to be committed.
 * - When the callback is over, every statement is refused: the client may be in somebody else's hands by then.
 * - Libraries release and end what they are given. Here that does nothing.
 */
import { failure, quote } from '../../../core/errors.js'
import type { PgClient, PgPool } from '../connection/driver.js'
import { sqlState } from '../connection/errors.js'
import { poolOfOne } from './single-client-pool.js'
import { standIn, statementText } from './stand-in.js'
import { transactionWords } from './transaction-statements.js'

/** A handler's transaction. Name the types of your driver to pass the client on: `PostgresTransaction<PoolClient>`. */
export interface PostgresTransaction<Client = unknown, Pool = unknown> {
  query<Row = Record<string, unknown>>(
    sql: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number | null }>
  /** The client of `pg`, for libraries that take one. */
  readonly client: Client
  /** The same as a pool of one, for libraries that take a pool: transactions that they begin are savepoints. */
  readonly pool: Pool
}

/** The connection, as far as a callback is concerned. */
interface Held {
  readonly client: PgClient
  readonly over: Promise<void>
  /** Told of each statement; what it gives back, of its answer. */
  sent(): () => void
}

interface Queryable {
  query(...args: readonly unknown[]): unknown
}

/** Says only that a statement before it has failed. */
const IN_FAILED_TRANSACTION = '25P02'

export class HandlerClient {
  readonly tx: PostgresTransaction
  readonly #client: Queryable
  readonly #sent: () => () => void
  #open = true
  #problem: unknown

  constructor(pool: PgPool, held: Held) {
    const { client, over } = held
    this.#client = client
    this.#sent = () => held.sent()
    const query = (...args: readonly unknown[]) => this.#query(args)
    this.tx = {
      query: query as PostgresTransaction['query'],
      client: standIn(client, { query, release: () => {}, end: async () => {} }),
      pool: poolOfOne(pool, client, (args) => this.#query(args), over),
    }
  }

  /** The last statement's error that was not the consequence of another's. */
  get problem(): unknown {
    return this.#problem
  }

  /** The callback is over. */
  close(): void {
    this.#open = false
  }

  #query(args: readonly unknown[]): unknown {
    const refusal = this.#refusal(statementText(args[0]))
    const callback = args.at(-1)
    if (typeof callback !== 'function') {
      if (refusal !== undefined) return refuse(args[0], refusal)
      const answer = this.#client.query(...args)
      // Anything else is a cursor, which is answered only when it is read.
      if (answer instanceof Promise) answer.catch(this.#note).finally(this.#sent())
      return answer
    }
    if (refusal !== undefined) return queueMicrotask(() => callback(refusal))
    const answered = this.#sent()
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
    if (!this.#open) {
      return failure('OPTION_INVALID', 'transaction(): its callback has ended, and with it the use of `tx`')
    }
    const [statement] = transactionWords(sql)
    if (statement === undefined) return undefined
    return failure(
      'OPTION_INVALID',
      `transaction(): the callback is inside a transaction that Belfry begins and ends, so ${quote(statement)} is refused; use a savepoint, or throw to roll back`,
    )
  }
}

/** A cursor is what was given, and no promise. */
function refuse(query: unknown, refusal: Error): Promise<never> {
  if (typeof (query as { readonly submit?: unknown } | null | undefined)?.submit === 'function') throw refusal
  return Promise.reject(refusal)
}
