/**
 * How operations reach the database.
 *
 * **No session state.** An operation is one statement that commits by itself, or one short transaction, so a pooler may
 * run each on another connection.
 *
 * **Limits.** Every statement has a limit for its answer. A network can swallow bytes for a quarter of an hour before TCP
 * reports it, and a lease is over in seconds; so a connection that is silent for longer than the limit counts as broken.
 * - `prompt`, a third of the lease: beats, claims, settlements, ticks. It leaves time to repeat them while the lease runs.
 * - `usual`, the same but at least 5 s: other single operations.
 * - `patient`, 30 s: lists, and operations on thousands of schedules or runs. It ends early, after one prompt limit, when
 *   another connection has become silent meanwhile.
 *
 * **What is repeated** depends on what an error proves (`errors.ts`):
 *
 * | error      | example                                   | the database                     | then                              |
 * | ---------- | ----------------------------------------- | -------------------------------- | --------------------------------- |
 * | `conflict` | deadlock, two inserts of the same         | is unchanged                     | repeat, up to 100 times           |
 * | `refused`  | server starting, no connection left       | is unchanged                     | repeat for about half a second    |
 * | `broken`   | connection lost, or silent past its limit | may be changed (unknown outcome) | repeat only what is `repeatable`  |
 * | none       | a constraint, a mistake                   | is unchanged                     | throw                             |
 *
 * A repeatable write finds, when it runs again, that it was done. For one that cannot, the caller gets STORE_UNREACHABLE
 * and has to look. Half a second covers a failover that is nearly over; the loops of the engine go on
 * for as long as an outage lasts. After a silence there is little time left: no repetition begins later than half a limit
 * after the first has passed.
 *
 * **Half-open connections.** A silent connection is closed here, but its server process may still wait for a lock, or hold
 * some inside a transaction; `END_SILENT` ends such a process, so that the repetition does not wait for it. A process that
 * works on the statement may finish it.
 *
 * **Settings.** A function that waits for a lock and then reads must see what was committed meanwhile, so operations need
 * `read committed`, and refuse to run at any other level (BF003). They are then repeated in a transaction of that level.
 * Where the default is another level, or where a session finds other functions before the built-in ones, every statement
 * has such a transaction (`session.ts`).
 */
import { type Clock, sleep } from '../../../core/clock.js'
import { Silence } from '../../../core/connection/in-time.js'
import { KnownLease, replyLimitMs } from '../../../core/connection/reply-limit.js'
import { inSchema } from '../schema/schema-name.js'
import { type PgClient, type PgPool, type Query, type Row, rawQuery } from './driver.js'
import { isOfDriver, isWrongIsolation, storeError, troubleOf } from './errors.js'
import { FIRST_CONNECT_MS, isInTransaction, leftOpen, PoolClients } from './pool-clients.js'
import { PreparedStatements } from './prepared-statements.js'
import { type ProofOfLife, unproven } from './proof-of-life.js'
import { ServerIdentity } from './server-identity.js'
import type { Session } from './session.js'
import { type Change, changesIn } from './wakes.js'

export type { Row } from './driver.js'

/** Statements inside one transaction. */
export interface Transaction {
  run(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

export interface DatabaseOptions {
  readonly pool: PgPool
  readonly schema: string
  readonly clock: Clock
  /** Gets what operations changed. */
  readonly announce?: (changes: readonly Change[]) => void
  /** The server that this process has seen. */
  readonly identity?: ServerIdentity
  /** Called when a connection of the pool has become silent. */
  readonly onSilence?: () => void
  readonly channel?: string
  /** Present in the advisory mode. */
  readonly proof?: Pick<ProofOfLife, 'number' | 'holds'>
  /** One limit for all statements, instead of those that follow from the lease. */
  readonly limitMs?: number
}

export interface StatementOptions {
  /** Whether a repetition changes nothing more. True by default. */
  readonly repeatable?: boolean
  readonly patience?: 'prompt' | 'usual' | 'patient'
  /** Of the lock that the statement renews: the limit follows from it, and not from the lease. */
  readonly ttlMs?: number
  /** Whether the statement may be prepared, and its plan kept. True by default. */
  readonly named?: boolean
}

type TransactionWork<Outcome> = (rows: readonly Row[], tx: Transaction) => Promise<Outcome>

const MAX_CONFLICTS = 100
const MAX_CONFLICT_WAIT_MS = 60
const TROUBLE_WAITS_MS = [50, 150, 450] as const
/** In limits: how long after its beginning an operation is still repeated. */
const REPEAT_WITHIN = 1.5
const MIN_USUAL_MS = 5_000
const PATIENT_MS = 30_000

/** Ends a server process that waits for a lock or inside a transaction, and tells whether commits wait for a standby. */
const END_SILENT = `select pg_catalog.bool_or(wait_event = 'SyncRep'), pg_catalog.bool_or(pg_catalog.pg_terminate_backend(
    case when pid = $1 and (state like 'idle in transaction%' or wait_event_type = 'Lock') then pid end))
  from pg_catalog.pg_stat_activity where usename = session_user`
const WAITS_FOR_STANDBY =
  ': its commits wait for a synchronous standby that does not answer (see synchronous_standby_names)'

export class Database {
  readonly pool: PgPool
  readonly schema: string
  readonly clock: Clock
  /** The channel that other processes listen on; undefined when no hints are sent. */
  readonly channel: string | undefined
  readonly lease = new KnownLease()
  readonly clients: PoolClients
  readonly #options: Pick<DatabaseOptions, 'announce' | 'onSilence' | 'proof' | 'limitMs'>
  readonly #texts = new Map<string, string>()
  readonly #prepared = new PreparedStatements()
  #isEndingSilent = false
  #waitsForStandby = false

  constructor({ pool, schema, clock, channel, identity = new ServerIdentity(), ...options }: DatabaseOptions) {
    this.pool = pool
    this.schema = schema
    this.clock = clock
    this.channel = channel
    this.#options = options
    this.clients = new PoolClients({
      ...{ pool, clock, identity },
      promptMs: () => this.limitMs({ patience: 'prompt' }),
      onSilence: (client, session) => {
        options.onSilence?.()
        if (session?.isDirect) void this.#endSilent(client)
      },
    })
  }

  /** Run once, before anything else: fails soon, and explains a pool or a server that cannot be used. */
  async checkServer(): Promise<void> {
    await this.attempt(() => this.#withClient(async () => {}, FIRST_CONNECT_MS))
  }

  /** Tells subscribers and other processes what an operation changed, as the database's function returned it. */
  announce(changes: readonly Change[] | string): void {
    this.#options.announce?.(typeof changes === 'string' ? changesIn(changes) : changes)
  }

  /** One statement that changes nothing. */
  read(sql: string, values: readonly unknown[] = [], options: StatementOptions = {}): Promise<readonly Row[]> {
    return this.attempt(() => this.send(sql, values, options), options)
  }

  /** A read whose text depends on its filters: planned each time, for the tables as they are. */
  search(sql: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.read(sql, values, { named: false, patience: 'patient' })
  }

  /** One atomic statement. It must be idempotent, because `attempt` repeats it after a lost answer, unless `repeatable` is false. */
  write(sql: string, values: readonly unknown[] = [], options: StatementOptions = {}): Promise<readonly Row[]> {
    return this.read(sql, values, options)
  }

  /**
   * A write that tells whether an earlier try may have been carried out without its answer (`isInDoubt`). A repeated
   * release finds nothing to release, and cannot tell by itself whether the lock was still held before.
   */
  async writeReportingDoubt(
    sql: string,
    values: readonly unknown[],
  ): Promise<{ readonly rows: readonly Row[]; readonly isInDoubt: boolean }> {
    let isInDoubt = false
    const rows = await this.attempt(() =>
      this.send(sql, values).catch((error: unknown) => {
        if (troubleOf(error) === 'broken') isInDoubt = true
        throw error
      }),
    )
    return { rows, isInDoubt }
  }

  /** Repeats `work`, which may be several statements with decisions between them, as the table above says. */
  async attempt<Outcome>(work: () => Promise<Outcome>, options: StatementOptions = {}): Promise<Outcome> {
    const repeatUntil = this.clock.monotonic() + this.limitMs(options) * REPEAT_WITHIN
    let [conflicts, troubles] = [0, 0]
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const trouble = troubleOf(error)
        if (trouble === 'conflict') conflicts += 1
        else troubles += 1
        const isLate = trouble !== 'conflict' && this.clock.monotonic() > repeatUntil
        const isFinal = trouble === undefined || (trouble === 'broken' && options.repeatable === false)
        if (isFinal || isLate || conflicts >= MAX_CONFLICTS || troubles > TROUBLE_WAITS_MS.length) {
          throw isOfDriver(error) ? storeError(error, this.schema, { because: this.#because(error) }) : error
        }
        const waitMs =
          trouble === 'conflict'
            ? Math.min(2 ** conflicts, MAX_CONFLICT_WAIT_MS)
            : (TROUBLE_WAITS_MS[troubles - 1] ?? 0)
        // Half by chance, so that processes that failed together do not come back together.
        await sleep(this.clock, waitMs * (0.5 + Math.random() / 2))
      }
    }
  }

  /** One transaction. `first` travels with the `begin`; it may contain numbers, but no parameters. */
  transaction<Outcome>(
    first: string,
    work: TransactionWork<Outcome>,
    options: StatementOptions = {},
  ): Promise<Outcome> {
    return this.attempt(() => this.#withClient((client) => this.#transact(client, first, work, options)), options)
  }

  /**
   * Gives `work` the number that proves this process's life, in the advisory mode. When the number has changed by the time
   * of the answer, others may already have taken what was obtained; then `work` runs `again` with the new number, or fails.
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

  /** One statement, not repeated: a step of an `attempt`, which is repeated as a whole. */
  send(sql: string, values: readonly unknown[], options: StatementOptions = {}): Promise<readonly Row[]> {
    const query = this.#query(sql, values)
    const limitMs = this.limitMs(options)
    return this.#withClient(async (client, { isPlain, isDirect }) => {
      const inTransaction = () => this.#transact(client, '', (_, tx) => tx.run(sql, values), options)
      if (!isPlain) return inTransaction()
      const sent = isDirect && options.named !== false ? this.#prepared.named(query) : query
      try {
        return await this.clients.send(client, sent, limitMs)
      } catch (error) {
        if (isInTransaction(client)) throw leftOpen()
        if (this.#prepared.isRefused(error, sent)) return this.clients.send(client, query, limitMs)
        if (!isWrongIsolation(error)) throw error
        return inTransaction()
      }
    })
  }

  /** One statement without parameters, on a client that the caller has taken. */
  sendOn(client: PgClient, sql: string): Promise<readonly Row[]> {
    return this.clients.send(client, rawQuery(sql), this.limitMs())
  }

  limitMs({ patience = 'usual', ttlMs }: StatementOptions = {}): number {
    const { limitMs } = this.#options
    if (limitMs !== undefined) return limitMs
    if (ttlMs !== undefined) return replyLimitMs(ttlMs)
    if (patience === 'patient') return PATIENT_MS
    return patience === 'prompt' ? this.lease.limitMs : Math.max(this.lease.limitMs, MIN_USUAL_MS)
  }

  /** The text for this store's schema. */
  text(sql: string): string {
    const known = this.#texts.get(sql)
    if (known !== undefined) return known
    const text = inSchema(sql, this.schema)
    if (this.#texts.size < 1_000) this.#texts.set(sql, text)
    return text
  }

  /** A statement that turns out to have run inside a transaction of the app's has done nothing, whatever it answered. */
  async #withClient<Outcome>(
    work: (client: PgClient, session: Session) => Promise<Outcome>,
    connectMs?: number,
  ): Promise<Outcome> {
    const { client, session } = await this.clients.take(connectMs)
    let isUsable = false
    try {
      const outcome = await work(client, session)
      if (isInTransaction(client)) throw leftOpen()
      isUsable = true
      return outcome
    } catch (error) {
      // After an error of its own, the server is ready for the next statement.
      isUsable = !isLost(error) && !isInTransaction(client)
      throw error
    } finally {
      this.clients.giveBack(client, !isUsable)
    }
  }

  async #transact<Outcome>(
    client: PgClient,
    first: string,
    work: TransactionWork<Outcome>,
    options: StatementOptions,
  ): Promise<Outcome> {
    const run = (sql: string, values?: readonly unknown[]) =>
      this.clients.send(client, this.#query(sql, values), this.limitMs(options))
    try {
      const outcome = await work(await run(this.#begin() + first), { run })
      await run('commit')
      return outcome
    } catch (error) {
      // A transaction that cannot be rolled back ends with its connection.
      if (!isLost(error)) await this.sendOn(client, 'rollback').catch(() => {})
      throw error
    }
  }

  /**
   * The server ends a transaction whose process was stopped in it or lost its network, so that its rows come free. A takeover
   * may wait for them: so this limit, too, is a third of the lease.
   */
  #begin(): string {
    const idleMs = Math.ceil(this.limitMs({ patience: 'prompt' }))
    return `begin isolation level read committed; set local search_path = pg_catalog; set local idle_in_transaction_session_timeout = ${idleMs};`
  }

  /** One at a time, and not through a pooler, whose process numbers are not the server's. */
  async #endSilent({ processID }: PgClient): Promise<void> {
    if (this.#isEndingSilent) return
    this.#isEndingSilent = true
    const [row] = await this.send(END_SILENT, [processID]).catch(() => [])
    if (row !== undefined) this.#waitsForStandby = row[0] === 't'
    this.#isEndingSilent = false
  }

  #because(error: Error): string {
    return error instanceof Silence && this.#waitsForStandby ? WAITS_FOR_STANDBY : ''
  }

  #query(sql: string, values?: readonly unknown[]): Query {
    return rawQuery(this.text(sql), values)
  }
}

/** Whether the connection is of no further use, even if the server has answered with an error. */
function isLost(error: unknown): boolean {
  const trouble = troubleOf(error)
  return trouble === 'refused' || trouble === 'broken'
}
