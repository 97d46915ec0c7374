/**
 * Proof of life, the advisory mode: this process holds a session's advisory lock on a number of its own, over the direct
 * connection. Rows that it writes carry the number, and whoever meets them and gets that lock knows that it is gone.
 *
 * - The process dies, or its connection is cut: the server frees the lock with the session, and anybody may take over
 *   at once. This side hears of it from the connection, and gives up everything that it holds.
 * - The connection is lost and this side does not hear of it (a failover, a firewall): once a second it looks, by way of
 *   the pool as anybody else would, whether its own lock could be had.
 * - The machine vanishes and the server does not hear of it: the lock stays until the server gives the connection up,
 *   which it is told to do soon. The time on the rows counts all the same, and whichever is first ends the lease.
 * - An answer that comes when its number is no longer the current one: what it speaks of may be somebody else's.
 */
import { type Clock, sleep } from '../../../core/clock.js'
import { type BelfryError, failure } from '../../../core/errors.js'
import type { Database } from './database.js'
import type { DirectClient, DirectConnection, DirectUse } from './direct-connection.js'
import { sqlState, storeError } from './errors.js'
import { IS_GONE, KEEP_SESSION, TAKE_NUMBER } from './proof-sql.js'

export interface ProofOptions {
  readonly clock: Clock
  readonly database: () => Database
  readonly direct: () => DirectConnection
  /** The option that says where the direct connection goes. */
  readonly option: 'direct' | 'url'
}

const LOOK_EVERY_MS = 1_000
/** How long an operation waits for a connection that is being opened again. */
const PATIENCE_MS = 2_000
const MAX_TRIES = 10

export class Proof implements DirectUse {
  readonly #options: ProofOptions
  readonly #listeners = new Set<(why: string) => void>()
  readonly #waiting = new Set<() => void>()
  #taken: number | undefined
  #number: number | undefined
  /** The number that proves life now, for other threads of this process; 0 for none. */
  readonly memory = new SharedArrayBuffer(4)
  readonly #word = new Int32Array(this.memory)
  #stopLooking = () => {}

  constructor(options: ProofOptions) {
    this.#options = options
  }

  /** Tells when the proof is lost: then all that was obtained with it is given up. */
  onLost = (listener: (why: string) => void): (() => void) => {
    const own = (why: string) => listener(why)
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  /** The number that proves life now. */
  async number(): Promise<number> {
    const { database, direct, option } = this.#options
    await direct()
      .open()
      .catch((error: unknown) => {
        throw storeError(error, database().schema, `the direct connection (\`${option}\`): `)
      })
    if (this.#number === undefined) {
      direct().hurry()
      await this.#untilReady()
    }
    if (this.#number === undefined) throw unproven('there is no direct connection to prove it with')
    return this.#number
  }

  /** Whether a number still proves life. */
  holds(number: number): boolean {
    return this.#number === number
  }

  async prepare(client: DirectClient): Promise<void> {
    await client.query(KEEP_SESSION)
    const number = await takeNumber(client, this.#options.database().text(TAKE_NUMBER)).catch((error: unknown) =>
      this.#explain(error),
    )
    // Nobody could be proven alive, and every lock would be free to take.
    if (await this.#isGone(number)) throw elsewhere()
    this.#taken = number
  }

  ready(): void {
    const number = this.#taken
    this.#number = number
    Atomics.store(this.#word, 0, number ?? 0)
    for (const resolve of this.#waiting) resolve()
    if (number !== undefined) this.#lookAfter(number)
  }

  broken(): void {
    this.#stopLooking()
    this.#number = undefined
    Atomics.store(this.#word, 0, 0)
    for (const listener of [...this.#listeners]) listener('the connection that proved that this process lives broke')
  }

  close(): void {
    this.#listeners.clear()
    this.#stopLooking()
  }

  #lookAfter(number: number): void {
    const { clock, direct } = this.#options
    this.#stopLooking = clock.after(LOOK_EVERY_MS, async () => {
      // A pool that does not answer proves nothing: leases run out by themselves.
      const gone = await this.#isGone(number).catch(() => false)
      if (!this.holds(number)) return
      if (gone) direct().drop()
      else this.#lookAfter(number)
    })
  }

  /** Without the tables it is another database, if the pool finds them in its own. */
  async #explain(error: unknown): Promise<never> {
    if (!NOT_THERE.has(sqlState(error) ?? '')) throw error
    await this.#isGone(0)
    throw elsewhere(error)
  }

  /** Whether others would get the lock on a number, as they would find out. */
  async #isGone(number: number): Promise<boolean> {
    const [row] = await this.#options.database().read(IS_GONE, [number])
    return row?.[0] === 't'
  }

  async #untilReady(): Promise<void> {
    const done = new AbortController()
    const ready = new Promise<void>((resolve) => {
      this.#waiting.add(resolve)
      done.signal.addEventListener('abort', () => this.#waiting.delete(resolve))
    })
    await Promise.race([ready, sleep(this.#options.clock, PATIENCE_MS, done.signal)])
    done.abort()
  }
}

export function unproven(why: string): BelfryError {
  return failure('STORE_UNREACHABLE', `this process cannot prove that it lives: ${why}; still trying`)
}

/** No such schema, or no such table. */
const NOT_THERE: ReadonlySet<string> = new Set(['3F000', '42P01'])

function elsewhere(cause?: unknown): BelfryError {
  return failure(
    'OPTION_INVALID',
    '`direct` reaches another server or database than the pool: they must be the same',
    cause === undefined ? {} : { cause },
  )
}

async function takeNumber(client: DirectClient, sql: string): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const { rows } = await client.query(sql)
    const [row] = rows as readonly { readonly n: unknown; readonly taken: unknown; readonly pid: unknown }[]
    checkSession(client, Number(row?.pid))
    if (row?.taken === true) return Number(row.n)
  }
  throw unproven('others hold the advisory locks on its numbers')
}

/** A pooler announces a number of its own making. */
function checkSession({ processID }: DirectClient, pid: number): void {
  if (typeof processID !== 'number' || processID === pid) return
  throw failure(
    'OPTION_INVALID',
    'the advisory mode needs a connection to the server itself, and there is a pooler in between: pass `direct` with the server’s own URL',
  )
}
