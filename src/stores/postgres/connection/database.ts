/**
 * How operations reach the database.
 *
 * **No session state.** An operation is one statement that commits by itself, or one short transaction, so a pooler may
 * run each on another connection.
 *
 * **Limits.** Every statement has a limit for its reply. A network can swallow bytes for a quarter of an hour before
 * TCP reports it, but a lease expires within seconds. So a connection that is silent for longer than the limit counts
 * as broken.
 * - `prompt`, a third of the lease: beats, claims, settlements, ticks. It leaves time to repeat them while the lease
 *   runs.
 * - `usual`, the same but at least 5 s: other single operations.
 * - `patient`, 30 s: lists, and operations on thousands of schedules or runs. It ends early, after a prompt limit, if
 *   another connection has become silent meanwhile.
 *
 * **What is repeated** depends on what an error proves (`errors.ts`):
 *
 * | error      | example                                   | the database   | then                             |
 * | ---------- | ----------------------------------------- | -------------- | -------------------------------- |
 * | `conflict` | deadlock, two inserts of the same key     | is unchanged   | repeat, up to 100 times          |
 * | `refused`  | server starting, no connection left       | is unchanged   | repeat for about half a second   |
 * | `broken`   | connection lost, or silent past its limit | may be changed | repeat only what is `repeatable` |
 * | none       | a constraint, a mistake                   | is unchanged   | throw                            |
 *
 * A repeatable write that runs twice changes nothing the second time. For any other write the caller gets
 * STORE_UNREACHABLE and has to check whether it was applied. Half a second covers the end of a failover; during a
 * longer outage the engine's loops keep retrying. No repetition begins later than one and a half limits after the
 * operation began, because the lease may be about to expire.
 *
 * **Half-open connections.** A silent connection is closed on this side, but its server process may still wait for a
 * lock, or hold locks in an open transaction. `END_SILENT` ends such a process, so that the repetition does not wait
 * for it. A process that is executing the statement is left to finish it.
 *
 * **Settings.** A function that waits for a lock and then reads must see what was committed meanwhile. So operations
 * need `read committed`, and refuse to run at any other level (BF003); the refused operation is repeated in a
 * transaction of that level. If a session has another default level, or finds other functions before the built-in ones,
 * every statement runs in such a transaction (`session.ts`).
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
  /** Receives the changes that each operation reports. */
  readonly announce?: (changes: readonly Change[]) => void
  /** Remembers which server this process has seen. */
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
  /** Whether the statement is idempotent, so that it is repeated after a lost reply. True by default. */
  readonly repeatable?: boolean
  readonly patience?: 'prompt' | 'usual' | 'patient'
  /** The TTL of the lock that the statement renews. The reply limit is then a part of this TTL instead of the lease. */
  readonly ttlMs?: number
  /** Whether the statement may be prepared, so that Postgres keeps its plan. True by default. */
  readonly named?: boolean
}

type TransactionWork<Outcome> = (rows: readonly Row[], tx: Transaction) => Promise<Outcome>

const MAX_CONFLICTS = 100
const MAX_CONFLICT_WAIT_MS = 60
const TROUBLE_WAITS_MS = [50, 150, 450] as const
/** An operation is repeated until this many limits after it began. */
const REPEAT_WITHIN = 1.5
const MIN_USUAL_MS = 5_000
const PATIENT_MS = 30_000

/**
 * Ends the server process of a silent connection if it waits for a lock or is idle in a transaction. Also returns
 * whether any commit waits for a synchronous standby.
 */
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

  /**
   * Called once, before all other operations: fails quickly, with an explanation, when the pool or the server cannot be
   * used.
   */
  async checkServer(): Promise<void> {
    await this.attempt(() => this.#withClient(async () => {}, FIRST_CONNECT_MS))
  }

  /**
   * Announces an operation's changes to subscribers and to other processes. A string comes from a database function,
   * such as `{runs,leases}`.
   */
  announce(changes: readonly Change[] | string): void {
    this.#options.announce?.(typeof changes === 'string' ? changesIn(changes) : changes)
  }

  /** One statement that changes nothing. */
  read(sql: string, values: readonly unknown[] = [], options: StatementOptions = {}): Promise<readonly Row[]> {
    return this.attempt(() => this.send(sql, values, options), options)
  }

  /**
   * A read whose SQL depends on its filters. It is not prepared, so Postgres plans it each time with the current
   * statistics.
   */
  search(sql: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.read(sql, values, { named: false, patience: 'patient' })
  }

  /**
   * One atomic statement. It must be idempotent, because `attempt` repeats it after a lost reply, unless `repeatable`
   * is false.
   */
  write(sql: string, values: readonly unknown[] = [], options: StatementOptions = {}): Promise<readonly Row[]> {
    return this.read(sql, values, options)
  }

  /**
   * A write that also reports whether an earlier try may have been applied although its reply was lost (`isInDoubt`). A
   * release needs this: its second try finds nothing to release, and cannot know whether the first one did.
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

  /** Runs `work`, and repeats it by the table above. `work` may be several statements with decisions between them. */
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
        // Half of the wait is random, so that processes that failed together do not retry together.
        await sleep(this.clock, waitMs * (0.5 + Math.random() / 2))
      }
    }
  }

  /**
   * Runs one transaction. `first` is sent in the same message as `begin`, so it may contain numbers, but no parameters.
   */
  transaction<Outcome>(
    first: string,
    work: TransactionWork<Outcome>,
    options: StatementOptions = {},
  ): Promise<Outcome> {
    return this.attempt(() => this.#withClient((client) => this.#transact(client, first, work, options)), options)
  }

  /**
   * Passes `work` the number that proves this process's life, or null outside the advisory mode. If the number has
   * changed when the reply arrives, other processes may already have taken over what `work` obtained. Then `work` runs
   * again with the new number if `again` is set; otherwise this throws.
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

  /** Sends one statement without repeating it. For steps of an `attempt`, which is repeated as a whole. */
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

  /** Sends one statement without parameters, on a client that the caller has taken. */
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

  /** The SQL with this store's schema in place of `belfry`. */
  text(sql: string): string {
    const known = this.#texts.get(sql)
    if (known !== undefined) return known
    const text = inSchema(sql, this.schema)
    if (this.#texts.size < 1_000) this.#texts.set(sql, text)
    return text
  }

  /**
   * Takes a client for `work`. Throws if the statement turns out to have run inside a transaction that the app left
   * open: that write does not last, whatever the reply was.
   */
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
      // An error that the server reported leaves the connection usable.
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
      // If this rollback fails, the connection is closed, which rolls the transaction back.
      if (!isLost(error)) await this.sendOn(client, 'rollback').catch(() => {})
      throw error
    }
  }

  /**
   * The server ends a transaction that stays idle because its process was stopped or lost its network, which frees the
   * row locks. A takeover may wait for those rows, so this limit is a third of the lease, too.
   */
  #begin(): string {
    const idleMs = Math.ceil(this.limitMs({ patience: 'prompt' }))
    return `begin isolation level read committed; set local search_path = pg_catalog; set local idle_in_transaction_session_timeout = ${idleMs};`
  }

  /**
   * Ends the server process of a silent connection, one at a time. Not for a connection through a pooler, whose process
   * ids are not the server's.
   */
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

/** Whether the connection must be closed, even if the server has answered with an error. */
function isLost(error: unknown): boolean {
  const trouble = troubleOf(error)
  return trouble === 'refused' || trouble === 'broken'
}
