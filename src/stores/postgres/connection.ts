/**
 * How operations reach the database. Each is one statement that commits by itself, or one short transaction; nothing of
 * a session is relied on, so that any pooler may hand every transaction to another connection.
 *
 * What went wrong is one of three things. A deadlock or a serialization failure has changed nothing, and is tried again
 * for as long as it takes. A server that was not reached, or refused, has changed nothing either: that is tried again for
 * a moment, because a restart or a failover may be over by then. A connection that broke may have changed something: what
 * is safe to repeat is repeated for that same moment, and what is not is the caller's to know.
 */
import { type Clock, sleep } from '../../core/clock.js'
import { TimeGuess } from '../../core/time-guess.js'
import { driven, isOfDriver, isWrongIsolation, sqlState, storeError, troubleOf } from './connection-errors.js'
import { type Proof, unproven } from './proof.js'
import { inSchema } from './schema.js'
import { StatementNames } from './statement-names.js'
import { isLeftOpen, leftOpen, takeClient } from './take-client.js'

/** Values come as the text that the server sent, in the order of the columns. */
export type Row = readonly (string | null)[]

interface Query {
  readonly text: string
  /** Of a prepared statement. */
  readonly name?: string
  readonly values?: readonly unknown[]
  readonly rowMode: 'array'
  /** How long to wait for the answer, in milliseconds; 0 for as long as it takes. */
  readonly query_timeout?: number
  readonly types: { getTypeParser(): (value: string) => unknown }
}

interface Result {
  readonly rows: readonly unknown[]
}

/** What is called of a client of `pg`, and of anything that follows it. */
export interface PgClient {
  /** The number of the session, as it was announced when the connection was made. */
  readonly processID?: number | null
  /** What the server last said of the transaction: `I` for none. */
  getTransactionStatus?(): string | null
  /** Where older drivers tell the same. */
  readonly connection?: {
    on(event: 'readyForQuery', listener: (message: { readonly status?: string }) => void): unknown
  }
  query(query: Query): Promise<Result | readonly Result[]>
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  release(broken?: boolean): void
}

export interface PgPool {
  readonly options?: { readonly max?: number | undefined }
  connect(): Promise<PgClient>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'acquire', listener: (client: PgClient) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'acquire', listener: (client: PgClient) => void): unknown
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
  /** Present when instances prove that they live. */
  readonly proof?: Proof
  /** How long a statement may take; 0 for as long as it wants. */
  readonly limitMs?: number
}

const MAX_TRIES = 100
const MAX_WAIT_MS = 60
/** A network may swallow an answer, and TCP would wait for a quarter of an hour. */
const LIMIT_MS = 30_000
/** Between tries to reach the server. Who has more patience has it elsewhere: the loops of the engine never give up. */
const TROUBLE_WAITS_MS = [50, 150, 450] as const

/** A stopped process must not hold rows. */
const IDLE_TIMEOUT_MS = 10_000
const BEGIN = `begin isolation level read committed; set local idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS};`

const SESSION = 'select pg_backend_pid()'

export class Database {
  readonly #options: DatabaseOptions
  readonly time: TimeGuess
  readonly #texts = new Map<string, string>()
  readonly #names = new StatementNames()
  #isolated = false

  constructor(options: DatabaseOptions) {
    this.#options = options
    this.time = new TimeGuess(options.clock)
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

  /** These connections begin at an isolation level that shows operations the past: each has a transaction of its own. */
  isolate(): void {
    this.#isolated = true
  }

  /** Finds out whether there is a pooler in between. */
  async findSession(): Promise<void> {
    await this.attempt(() =>
      this.#withClient(async (client) => {
        const [row] = rowsOf(await driven(client.query(this.#query(SESSION, []))))
        this.#names.tell(client, Number(row?.[0]))
      }),
    )
  }

  announce(wakes: number): void {
    if (wakes > 0) this.#options.announce(wakes)
  }

  /** One statement that only looks. */
  read(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.attempt(() => this.once(sql, values))
  }

  /** One that is put together from what was asked for: planned each time, for the tables as they are by then. */
  search(sql: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.attempt(() => this.once(sql, values, { named: false }))
  }

  /** One statement that changes something: all of it or nothing. Repeating it must change nothing more. */
  write(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.read(sql, values)
  }

  /** One statement that must not be done twice: when it is not known whether it was done, it fails. */
  writeOnce(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.attempt(() => this.once(sql, values), { repeatable: false })
  }

  /** Several statements, with something to think about between them: all is done again when others were faster. */
  async attempt<Outcome>(work: () => Promise<Outcome>, { repeatable = true } = {}): Promise<Outcome> {
    let [conflicts, troubles] = [0, 0]
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const trouble = troubleOf(error)
        if (trouble === 'conflict') conflicts += 1
        else troubles += 1
        const hopeless = trouble === undefined || (trouble === 'broken' && !repeatable)
        if (hopeless || conflicts >= MAX_TRIES || troubles > TROUBLE_WAITS_MS.length) {
          throw isOfDriver(error) ? storeError(error, this.#options.schema) : error
        }
        await this.#rest(trouble === 'conflict' ? Math.min(2 ** conflicts, MAX_WAIT_MS) : waitOf(troubles))
      }
    }
  }

  /**
   * Does something in the name of this process, with the number that proves that it lives if it has one. An answer that
   * comes when the number has changed counts for nothing, because what was obtained may be somebody else's by now: it is
   * done `again` with the new number, or fails.
   */
  async inPerson<Outcome>(work: (proof: number | null) => Promise<Outcome>, { again = false } = {}): Promise<Outcome> {
    const { proof } = this.#options
    if (proof === undefined) return work(null)
    for (;;) {
      const number = await proof.number()
      const outcome = await work(number)
      if (proof.holds(number)) return outcome
      if (!again) throw unproven('its direct connection broke meanwhile')
    }
  }

  /**
   * One statement of an attempt: if others were faster, it is for the whole attempt to be tried again. On a connection
   * that was left at an isolation level of somebody else's it needs a transaction of its own.
   */
  async once(sql: string, values: readonly unknown[], { named = true } = {}): Promise<readonly Row[]> {
    const apart = () => this.#transact('', (_, tx) => tx.run(sql, values))
    if (this.#isolated) return apart()
    const query = this.#query(sql, values)
    const name = named ? this.#names.of(query.text) : undefined
    try {
      return await this.#withClient(async (client) => {
        return rowsOf(await driven(client.query(name === undefined ? query : { ...query, name })))
      })
    } catch (error) {
      if (this.#names.giveUp(error, name)) return this.once(sql, values)
      if (!isWrongIsolation(error)) throw error
      return apart()
    }
  }

  /** A statement that commits by itself. */
  async #withClient<Outcome>(work: (client: PgClient) => Promise<Outcome>): Promise<Outcome> {
    const client = await takeClient(this.#options.pool)
    let broken = true
    client.on('error', ignore)
    try {
      const outcome = await work(client)
      broken = isLeftOpen(client)
      if (!broken) return outcome
    } catch (error) {
      // A server that has answered is ready for more.
      broken = sqlState(error) === undefined || isLost(error) || isLeftOpen(client)
      if (!isLeftOpen(client)) throw error
    } finally {
      giveBack(client, broken)
    }
    throw leftOpen()
  }

  /**
   * A transaction. Its first statement travels with the `begin`; it may hold numbers, and no parameters.
   */
  transaction<Outcome>(
    first: string,
    work: (rows: readonly Row[], tx: Transaction) => Promise<Outcome>,
    { repeatable = true } = {},
  ): Promise<Outcome> {
    return this.attempt(() => this.#transact(first, work), { repeatable })
  }

  async #transact<Outcome>(
    first: string,
    work: (rows: readonly Row[], tx: Transaction) => Promise<Outcome>,
  ): Promise<Outcome> {
    const client = await takeClient(this.#options.pool)
    let broken = true
    client.on('error', ignore)
    try {
      const run = async (sql: string, values?: readonly unknown[]) =>
        rowsOf(await driven(client.query(this.#query(sql, values))))
      const outcome = await work(await run(BEGIN + first), { run })
      await run('commit')
      broken = false
      return outcome
    } catch (error) {
      broken = isLost(error) || (await isBroken(client, this.#query('rollback')))
      throw error
    } finally {
      giveBack(client, broken)
    }
  }

  /** Half of a wait is by chance, so that those who failed together do not come back together. */
  async #rest(waitMs: number): Promise<void> {
    await sleep(this.#options.clock, waitMs * (0.5 + Math.random() / 2))
  }

  #query(sql: string, values?: readonly unknown[]): Query {
    const { limitMs = LIMIT_MS } = this.#options
    return { ...rawQuery(this.text(sql), values), query_timeout: limitMs }
  }

  /** The SQL for this schema: made once for each statement, of which there are few. */
  text(sql: string): string {
    const known = this.#texts.get(sql)
    if (known !== undefined) return known
    const text = inSchema(sql, this.#options.schema)
    if (this.#texts.size < 1_000) this.#texts.set(sql, text)
    return text
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

/** A connection that breaks between two statements tells nobody else, and would end the process. */
function ignore(): void {}

function giveBack(client: PgClient, broken: boolean): void {
  // One that is thrown away may break once more while it ends.
  if (!broken) client.removeListener('error', ignore)
  client.release(broken)
}

function waitOf(troubles: number): number {
  return TROUBLE_WAITS_MS[troubles - 1] ?? 0
}

/** Nothing good will come over this connection any more, even if it still answers. */
function isLost(error: unknown): boolean {
  const trouble = troubleOf(error)
  return trouble === 'refused' || trouble === 'broken'
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
