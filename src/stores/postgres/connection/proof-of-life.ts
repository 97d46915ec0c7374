/**
 * Proof of life, the advisory mode. This process holds a session advisory lock on a number of its own, over the direct
 * connection, and writes the number into its rows. If another process can take the lock on a row's number, the session
 * that wrote the row has ended.
 *
 * - **The process dies, or its connection is cut.** The server frees the lock with the session, and other processes
 *   take over at once. If this process still runs, its connection reports the end, and the process gives up everything
 *   that it holds.
 * - **The session ends, but this process is not told** (a failover, a firewall). So once a second this process checks
 *   over the pool, as others would, whether the lock on its own number is free.
 * - **The machine vanishes and the server does not notice.** The lock stays until the server's keepalive ends the
 *   session, after about 11 s. The lease expires independently; whichever comes first frees the rows.
 * - **A reply arrives after the number has changed.** What it grants may have been taken over: see
 *   `Database.withProof`.
 */
import { type Clock, sleep } from '../../../core/clock.js'
import { type BelfryError, failure } from '../../../core/errors.js'
import type { Database } from './database.js'
import type { DirectConnection, DirectUse } from './direct-connection.js'
import type { DirectClient } from './driver.js'
import { sqlState, storeError } from './errors.js'

export interface ProofOptions {
  readonly clock: Clock
  readonly database: () => Database
  readonly direct: () => DirectConnection
  /** The option that holds the URL of the direct connection. */
  readonly option: 'direct' | 'url'
}

/**
 * Takes a new number, and its advisory lock if no other session has that. Within a database, an advisory lock is
 * identified by two integers. The first is the oid of the schema's own sequence, so that two schemas never clash. The
 * second is the number from that sequence.
 */
const TAKE_NUMBER = `select n, pg_catalog.pg_try_advisory_lock('belfry.proofs'::regclass::oid::integer, n) as taken,
  pg_catalog.pg_backend_pid() as pid from (select pg_catalog.nextval('belfry.proofs')::integer as n) numbers`

const IS_GONE = 'select belfry.session_is_gone($1)'

/** Makes the server end the session within about 11 s after the client has vanished, and never because it is idle. */
const KEEP_SESSION = `select pg_catalog.set_config(s.name, wanted.value, false) from pg_catalog.pg_settings s
  join (values ('idle_session_timeout', '0'), ('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '2'),
    ('tcp_keepalives_count', '3')) wanted (name, value) on wanted.name operator(pg_catalog.=) s.name`

const CHECK_EVERY_MS = 1_000
/** How long an operation waits for a connection that is being replaced. */
const RECONNECT_MS = 2_000
const MAX_TRIES = 10

export class ProofOfLife implements DirectUse {
  /** The number that proves life now, for the beat thread; 0 for none. */
  readonly memory = new SharedArrayBuffer(4)
  readonly #shared = new Int32Array(this.memory)
  readonly #options: ProofOptions
  readonly #listeners = new Set<(why: string) => void>()
  readonly #waiting = new Set<() => void>()
  #prepared: number | undefined
  #number: number | undefined
  #stopChecks = () => {}

  constructor(options: ProofOptions) {
    this.#options = options
  }

  /** Calls back when the proof is lost. Everything obtained under its number may then belong to other processes. */
  onLost = (listener: (why: string) => void): (() => void) => {
    const own = (why: string) => listener(why)
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  /** The number that proves life now. The first call opens the direct connection. */
  async number(): Promise<number> {
    const { database, direct, option } = this.#options
    await direct()
      .open()
      .catch((error: unknown) => {
        throw storeError(error, database().schema, { of: `the direct connection (\`${option}\`): ` })
      })
    if (this.#number === undefined) {
      direct().hurry()
      await this.#untilReady()
    }
    if (this.#number === undefined) throw unproven('there is no direct connection to prove it with')
    return this.#number
  }

  /** Whether this number still proves life. */
  holds(number: number): boolean {
    return this.#number === number
  }

  async prepare(client: DirectClient): Promise<void> {
    await client.query(KEEP_SESSION)
    const number = await takeNumber(client, this.#options.database().text(TAKE_NUMBER)).catch((error: unknown) =>
      this.#explain(error),
    )
    // If the lock is free as seen over the pool, the pool reaches another database, in which every holder would seem
    // dead.
    if (await this.#isGone(number)) throw otherDatabase()
    this.#prepared = number
  }

  ready(): void {
    const number = this.#prepared
    this.#set(number)
    for (const resolve of [...this.#waiting]) resolve()
    if (number !== undefined) this.#checkLater(number)
  }

  broken(): void {
    this.#stopChecks()
    this.#set(undefined)
    for (const listener of [...this.#listeners]) listener('the connection that proved that this process lives broke')
  }

  close(): void {
    this.#listeners.clear()
    this.#stopChecks()
  }

  #set(number: number | undefined): void {
    this.#number = number
    Atomics.store(this.#shared, 0, number ?? 0)
  }

  #checkLater(number: number): void {
    const { clock, direct } = this.#options
    this.#stopChecks = clock.after(CHECK_EVERY_MS, async () => {
      // A pool that does not answer proves nothing. If the server is down, the lease expires by itself.
      const isGone = await this.#isGone(number).catch(() => false)
      if (!this.holds(number)) return
      if (isGone) direct().drop()
      else this.#checkLater(number)
    })
  }

  /**
   * Throws the error to report when no number could be taken. If the sequence is missing on the direct connection but exists on
   * the pool, the two reach different databases.
   */
  async #explain(error: unknown): Promise<never> {
    if (!MISSING.has(sqlState(error) ?? '')) throw error
    await this.#isGone(0)
    throw otherDatabase(error)
  }

  /** Whether another session could get the lock on this number. */
  async #isGone(number: number): Promise<boolean> {
    const [row] = await this.#options.database().read(IS_GONE, [number])
    return row?.[0] === 't'
  }

  async #untilReady(): Promise<void> {
    const over = new AbortController()
    const finish = () => over.abort()
    this.#waiting.add(finish)
    await sleep(this.#options.clock, RECONNECT_MS, over.signal)
    this.#waiting.delete(finish)
  }
}

export function unproven(why: string): BelfryError {
  return failure('STORE_UNREACHABLE', `this process cannot prove that it lives: ${why}; still trying`)
}

/** SQLSTATEs: no such schema; no such relation. */
const MISSING: ReadonlySet<string> = new Set(['3F000', '42P01'])

function otherDatabase(cause?: unknown): BelfryError {
  return failure(
    'OPTION_INVALID',
    '`direct` reaches another server or database than the pool: they must be the same',
    cause === undefined ? {} : { cause },
  )
}

/**
 * Takes a number with its lock. Tries another number if a foreign advisory lock has it, or if the sequence has cycled
 * to a number in use.
 */
async function takeNumber(client: DirectClient, sql: string): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const { rows } = await client.query(sql)
    const [row] = rows as readonly { readonly n: unknown; readonly taken: unknown; readonly pid: unknown }[]
    checkSession(client, Number(row?.pid))
    if (row?.taken === true) return Number(row.n)
  }
  throw unproven('others hold the advisory locks on its numbers')
}

/** Refuses a pooler, which announces a process id other than the server's. */
function checkSession({ processID }: DirectClient, pid: number): void {
  if (typeof processID !== 'number' || processID === pid) return
  throw failure(
    'OPTION_INVALID',
    'the advisory mode needs a connection to the server itself, and there is a pooler in between: pass `direct` with the server’s own URL',
  )
}
