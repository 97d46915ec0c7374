/**
 * How operations reach the database. Each is one statement that commits by itself, or one short transaction; nothing of
 * a session is relied on, so that any pooler may hand every transaction to another connection.
 *
 * What went wrong is one of three things. A deadlock or a serialization failure has changed nothing, and is tried again
 * for as long as it takes. A server that was not reached, or refused, has changed nothing either: that is tried again for
 * a moment, because a restart or a failover may be over by then. A connection that broke may have changed something: what
 * is safe to repeat is repeated for that same moment, and what is not is the caller's to know.
 *
 * Each statement has a limit for its answer. A connection that has not answered by then counts as broken: a network may
 * swallow bytes for a quarter of an hour before TCP says so. What a lease depends on is prompt: its limit is a third of the
 * lease, so that it is repeated while the lease still runs. Lists, and what one call may do to thousands of schedules or
 * runs, are patient.
 */
import { type Clock, sleep } from '../../../core/clock.js'
import { KnownLease, replyLimitMs } from '../../../core/reply-limit.js'
import { inSchema } from '../schema.js'
import { isOfDriver, isWrongIsolation, sqlState, storeError, troubleOf } from './errors.js'
import { type PgClient, type PgPool, type Query, type Row, rawQuery } from './pg-client.js'
import { Clients } from './pool-clients.js'
import { StatementNames } from './prepared-statements.js'
import { type Proof, unproven } from './proof-of-life.js'
import { isLeftOpen, leftOpen } from './take-client.js'
import { type Change, type Changes, changesIn } from './wakes.js'

export type { PgClient, PgPool, Row } from './pg-client.js'

/** Statements inside one transaction. */
export interface Transaction {
  run(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

export interface DatabaseOptions {
  readonly pool: PgPool
  readonly schema: string
  readonly clock: Clock
  /** Told what changed. */
  readonly announce: (changes: readonly Change[]) => void
  /** Where other processes listen for hints; absent when none are sent. */
  readonly channel?: string
  /** Present when instances prove that they live. */
  readonly proof?: Pick<Proof, 'number' | 'holds'>
  /** How long any statement may take, for those that follow no lease. */
  readonly limitMs?: number
}

/**
 * - `prompt`: a third of the lease.
 * - `usual`: the same, and not less than 5 s.
 * - `patient`: 30 s.
 */
type Patience = 'prompt' | 'usual' | 'patient'

/** How a statement is treated while it is under way. */
export interface StatementOptions {
  /** Whether doing it again changes nothing more. */
  readonly repeatable?: boolean
  /** How long its answer may take. */
  readonly patience?: Patience
  /** What it renews: its answer is needed while that still runs. */
  readonly ttlMs?: number
}

const MAX_TRIES = 100
const MAX_WAIT_MS = 60
const USUAL_MS = 5_000
const PATIENT_MS = 30_000
/** Between tries to reach the server. Who has more patience has it elsewhere: the loops of the engine never give up. */
const TROUBLE_WAITS_MS = [50, 150, 450] as const

/** A stopped process must not hold rows. */
const IDLE_TIMEOUT_MS = 10_000
const BEGIN = `begin isolation level read committed; set local idle_in_transaction_session_timeout = ${IDLE_TIMEOUT_MS};`

const SESSION = 'select pg_backend_pid()'

/**
 * Of a connection that was given up. A server that is still at work on the statement may finish it: the repetition then
 * finds it done. One that only waits, for a lock or for the rest of a transaction, would keep others waiting.
 */
const END_SILENT = `select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and usename = session_user
  and (state like 'idle in transaction%' or wait_event_type = 'Lock')`

export class Database {
  readonly #options: DatabaseOptions
  readonly lease = new KnownLease()
  readonly clients: Clients
  readonly #texts = new Map<string, string>()
  readonly #names = new StatementNames()
  #isolated = false
  #isEnding = false

  constructor(options: DatabaseOptions) {
    this.#options = options
    this.clients = new Clients(options.pool, options.clock, this.#endSilent)
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
        const [row] = await this.clients.send(client, this.#query(SESSION, []), this.limitMs())
        this.#names.tell(client, Number(row?.[0]))
      }),
    )
  }

  /** Tells subscribers and other processes what an operation changed, as the database's function returned it. */
  announce(changes: Changes): void {
    this.#options.announce(changesIn(changes))
  }

  /** One statement that only looks. */
  read(sql: string, values: readonly unknown[] = [], options: StatementOptions = {}): Promise<readonly Row[]> {
    return this.attempt(() => this.send(sql, values, options), options)
  }

  /** One that is put together from what was asked for: planned each time, for the tables as they are by then. */
  search(sql: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.attempt(() => this.send(sql, values, { named: false, patience: 'patient' }))
  }

  /** One statement that changes something: all of it or nothing. Repeating it must change nothing more. */
  write(sql: string, values: readonly unknown[] = [], options: StatementOptions = {}): Promise<readonly Row[]> {
    return this.read(sql, values, options)
  }

  /** One statement that must not be done twice: when it is not known whether it was done, it fails. */
  writeOnce(sql: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.read(sql, values, { repeatable: false, patience: 'patient' })
  }

  /**
   * A write whose repetition finds nothing left to do, and so cannot tell whether there was something before: a release.
   * `isInDoubt` says that an earlier try may have been carried out without its answer.
   */
  async writeReportingDoubt(
    sql: string,
    values: readonly unknown[],
  ): Promise<{ readonly rows: readonly Row[]; readonly isInDoubt: boolean }> {
    let isInDoubt = false
    const rows = await this.attempt(async () => {
      try {
        return await this.send(sql, values)
      } catch (error) {
        if (troubleOf(error) === 'broken') isInDoubt = true
        throw error
      }
    })
    return { rows, isInDoubt }
  }

  /** Several statements, with something to think about between them: all is done again when others were faster. */
  async attempt<Outcome>(work: () => Promise<Outcome>, { repeatable = true }: StatementOptions = {}): Promise<Outcome> {
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
  async withProof<Outcome>(work: (proof: number | null) => Promise<Outcome>, { again = false } = {}): Promise<Outcome> {
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
  async send(
    sql: string,
    values: readonly unknown[],
    { named = true, ...options }: StatementOptions & { readonly named?: boolean } = {},
  ): Promise<readonly Row[]> {
    const apart = () => this.#transact('', (_, tx) => tx.run(sql, values), options)
    if (this.#isolated) return apart()
    const query = this.#query(sql, values)
    const name = named ? this.#names.of(query.text) : undefined
    try {
      return await this.#withClient((client) =>
        this.clients.send(client, name === undefined ? query : { ...query, name }, this.limitMs(options)),
      )
    } catch (error) {
      if (this.#names.giveUp(error, name)) return this.send(sql, values, options)
      if (!isWrongIsolation(error)) throw error
      return apart()
    }
  }

  /** A statement that commits by itself. */
  async #withClient<Outcome>(work: (client: PgClient) => Promise<Outcome>): Promise<Outcome> {
    const client = await this.clients.take()
    let broken = true
    try {
      const outcome = await work(client)
      broken = isLeftOpen(client)
      if (!broken) return outcome
    } catch (error) {
      // A server that has answered is ready for more.
      broken = sqlState(error) === undefined || isLost(error) || isLeftOpen(client)
      if (!isLeftOpen(client)) throw error
    } finally {
      this.clients.giveBack(client, broken)
    }
    throw leftOpen()
  }

  /**
   * A transaction. Its first statement travels with the `begin`; it may hold numbers, and no parameters.
   */
  transaction<Outcome>(
    first: string,
    work: (rows: readonly Row[], tx: Transaction) => Promise<Outcome>,
    options: StatementOptions = {},
  ): Promise<Outcome> {
    return this.attempt(() => this.#transact(first, work, options), options)
  }

  async #transact<Outcome>(
    first: string,
    work: (rows: readonly Row[], tx: Transaction) => Promise<Outcome>,
    options: StatementOptions,
  ): Promise<Outcome> {
    const client = await this.clients.take()
    let broken = true
    try {
      const run = (sql: string, values?: readonly unknown[]) =>
        this.clients.send(client, this.#query(sql, values), this.limitMs(options))
      const outcome = await work(await run(BEGIN + first), { run })
      await run('commit')
      broken = false
      return outcome
    } catch (error) {
      broken = isLost(error) || (await this.#isBroken(client))
      throw error
    } finally {
      this.clients.giveBack(client, broken)
    }
  }

  /** One statement as it is, on a client that is held, with a limit for its answer. */
  tell(client: PgClient, sql: string): Promise<readonly Row[]> {
    return this.clients.send(client, rawQuery(sql), this.limitMs())
  }

  /** A connection whose transaction cannot even be rolled back is of no use to anybody. */
  #isBroken(client: PgClient): Promise<boolean> {
    return this.tell(client, 'rollback').then(
      () => false,
      () => true,
    )
  }

  readonly #endSilent = async ({ processID }: PgClient): Promise<void> => {
    // Through a pooler that number is not the server's.
    if (this.#isEnding || !this.#names.reachServer || typeof processID !== 'number') return
    this.#isEnding = true
    await this.send(END_SILENT, [processID]).catch(() => {})
    this.#isEnding = false
  }

  /** Half of a wait is by chance, so that those who failed together do not come back together. */
  async #rest(waitMs: number): Promise<void> {
    await sleep(this.#options.clock, waitMs * (0.5 + Math.random() / 2))
  }

  /** How long an answer is waited for. */
  limitMs({ patience = 'usual', ttlMs }: StatementOptions = {}): number {
    const { limitMs } = this.#options
    if (limitMs !== undefined) return limitMs
    if (ttlMs !== undefined) return replyLimitMs(ttlMs)
    if (patience === 'patient') return PATIENT_MS
    return patience === 'prompt' ? this.lease.limitMs : Math.max(this.lease.limitMs, USUAL_MS)
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
}

function waitOf(troubles: number): number {
  return TROUBLE_WAITS_MS[troubles - 1] ?? 0
}

/** Nothing good will come over this connection any more, even if it still answers. */
function isLost(error: unknown): boolean {
  const trouble = troubleOf(error)
  return trouble === 'refused' || trouble === 'broken'
}
