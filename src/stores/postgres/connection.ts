/**
 * How operations reach the database. Each is one statement that commits by itself, or one short transaction; nothing of
 * a session is relied on, so that any pooler may hand every transaction to another connection.
 *
 * A deadlock or a serialization failure has changed nothing, and is tried again. A connection that breaks may have
 * changed something: that is the caller's to know.
 */
import { type Clock, sleep } from '../../core/clock.js'
import { isConflict, isWrongIsolation, storeError } from './connection-errors.js'
import { inSchema } from './schema.js'

/** Values come as the text that the server sent, in the order of the columns. */
export type Row = readonly (string | null)[]

interface Query {
  readonly text: string
  readonly values?: readonly unknown[]
  readonly rowMode: 'array'
  readonly types: { getTypeParser(): (value: string) => unknown }
}

interface Result {
  readonly rows: readonly unknown[]
}

/** What is called of a client of `pg`, and of anything that follows it. */
export interface PgClient {
  query(query: Query): Promise<Result | readonly Result[]>
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  release(broken?: boolean): void
}

export interface PgPool {
  readonly options?: { readonly max?: number | undefined }
  connect(): Promise<PgClient>
  query(query: Query): Promise<Result>
  on(event: 'error', listener: (error: Error) => void): unknown
  end(): Promise<void>
}

const RAW: Query['types'] = { getTypeParser: () => (value) => value }

/** Statements inside one transaction. */
export interface Transaction {
  run(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

export interface DatabaseOptions {
  readonly pool: PgPool
  readonly schema: string
  readonly clock: Clock
  /** Told what changed, as bits. */
  readonly announce: (wakes: number) => void
  /** Where other processes listen for hints; absent when none are sent. */
  readonly channel?: string
}

const MAX_TRIES = 100
const MAX_WAIT_MS = 60

/** A stopped process must not hold rows. */
const IDLE_TIMEOUT_MS = 10_000
const BEGIN = `begin isolation level read committed; set local idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS};`

export class Database {
  readonly #options: DatabaseOptions
  readonly #texts = new Map<string, string>()

  constructor(options: DatabaseOptions) {
    this.#options = options
  }

  get schema(): string {
    return this.#options.schema
  }

  get pool(): PgPool {
    return this.#options.pool
  }

  get clock(): Clock {
    return this.#options.clock
  }

  get channel(): string | undefined {
    return this.#options.channel
  }

  announce(wakes: number): void {
    if (wakes > 0) this.#options.announce(wakes)
  }

  /** One statement that only looks. */
  read(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#patiently(() => this.once(sql, values))
  }

  /** One statement that changes something: all of it or nothing. */
  write(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.read(sql, values)
  }

  /** Several statements, with something to think about between them: all is done again when others were faster. */
  attempt<Outcome>(work: () => Promise<Outcome>): Promise<Outcome> {
    return this.#patiently(work)
  }

  /**
   * One statement of an attempt: if others were faster, it is for the whole attempt to be tried again. On a connection
   * that was left at an isolation level of somebody else's it needs a transaction of its own.
   */
  async once(sql: string, values: readonly unknown[]): Promise<readonly Row[]> {
    try {
      return rowsOf(await this.#options.pool.query(this.#query(sql, values)))
    } catch (error) {
      if (!isWrongIsolation(error)) throw error
      return this.#transact('', (_, tx) => tx.run(sql, values))
    }
  }

  /**
   * A transaction. Its first statement travels with the `begin`; it may hold numbers, and no parameters.
   */
  transaction<Outcome>(
    first: string,
    work: (rows: readonly Row[], tx: Transaction) => Promise<Outcome>,
  ): Promise<Outcome> {
    return this.#patiently(() => this.#transact(first, work))
  }

  async #transact<Outcome>(
    first: string,
    work: (rows: readonly Row[], tx: Transaction) => Promise<Outcome>,
  ): Promise<Outcome> {
    const client = await this.#options.pool.connect()
    let broken = true
    try {
      const run = async (sql: string, values?: readonly unknown[]) =>
        rowsOf(await client.query(this.#query(sql, values)))
      const outcome = await work(await run(BEGIN + first), { run })
      await run('commit')
      broken = false
      return outcome
    } catch (error) {
      broken = await isBroken(client, this.#query('rollback'))
      throw error
    } finally {
      client.release(broken)
    }
  }

  #query(sql: string, values?: readonly unknown[]): Query {
    return rawQuery(this.text(sql), values)
  }

  /** The SQL for this schema: made once for each statement, of which there are few. */
  text(sql: string): string {
    const known = this.#texts.get(sql)
    if (known !== undefined) return known
    const text = inSchema(sql, this.#options.schema)
    if (this.#texts.size < 1_000) this.#texts.set(sql, text)
    return text
  }

  async #patiently<Outcome>(work: () => Promise<Outcome>): Promise<Outcome> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await work()
      } catch (error) {
        if (tries >= MAX_TRIES || !isConflict(error)) throw storeError(error, this.#options.schema)
      }
      await sleep(this.#options.clock, Math.min(2 ** tries, MAX_WAIT_MS) * Math.random())
    }
  }
}

/** A statement whose answer comes as rows of texts. */
export function rawQuery(text: string, values?: readonly unknown[]): Query {
  return { text, ...(values === undefined ? {} : { values }), rowMode: 'array', types: RAW }
}

export function rowsOf(result: Result | readonly Result[]): readonly Row[] {
  const last = Array.isArray(result) ? (result as readonly Result[]).at(-1) : (result as Result)
  return (last?.rows ?? []) as readonly Row[]
}

/** A connection whose transaction cannot even be rolled back is of no use to anybody. */
async function isBroken(client: PgClient, rollback: Query): Promise<boolean> {
  try {
    await client.query(rollback)
    return false
  } catch {
    return true
  }
}
