/**
 * One connection to the server itself, for what does not work through a pooler: LISTEN, and the advisory lock that
 * proves life. While the store is open, a broken connection is replaced, after 0.1 s at first and up to 5 s later.
 *
 * A connection that only listens would never notice that it is half-open. So this process probes it with `select 1`
 * every 10 s, and at once when a connection of the pool has become silent. When no answer comes within 5 s, the
 * connection is replaced.
 */
import { type Clock, setAlarm, sleep } from '../../../core/clock.js'
import { inTime } from '../../../core/connection/in-time.js'
import type { DirectClient } from './driver.js'
import { driven } from './errors.js'

/** A user of the connection: the listener, or the proof of life. */
export interface DirectUse {
  /** Sets up a new connection. When it throws, the connection is closed, and another is opened later. */
  prepare(client: DirectClient): Promise<void>
  /** Called when all uses have prepared the connection. `isFirst` is false after a reconnect. */
  ready(isFirst: boolean): void
  /** Called once, as soon as a connection that was ready breaks. */
  broken(): void
}

export interface DirectOptions {
  readonly open: () => DirectClient
  readonly clock: Clock
  readonly uses: readonly DirectUse[]
  /** Whether `open` throws when the first attempt to connect fails. */
  readonly mustConnect: boolean
}

interface Connected {
  /** Fires as soon as the connection breaks. */
  readonly broken: AbortController
  /** Resolves when the connection is closed, which may take long after it broke. */
  readonly closed: Promise<void>
  /** Sends `select 1`, and drops the connection if no answer comes in time. */
  readonly probe: () => Promise<void>
}

const FIRST_WAIT_MS = 100
const MAX_WAIT_MS = 5_000
const CLOSE_MS = 1_000
const PREPARE_MS = 10_000
const PROBE_EVERY_MS = 10_000
const PROBE_ANSWER_MS = 5_000

export class DirectConnection {
  readonly #options: DirectOptions
  readonly #closed = new AbortController()
  #opened: Promise<void> | undefined
  #pause = new AbortController()
  #current: Connected | undefined
  #isFirst = true

  constructor(options: DirectOptions) {
    this.#options = options
  }

  /**
   * Connects; concurrent calls share one attempt. Without `mustConnect` it also resolves when the first attempt has
   * failed.
   */
  open(): Promise<void> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  /** Ends the pause between two attempts, because an operation needs the connection now. */
  hurry(): void {
    this.#pause.abort()
  }

  /** Checks now whether the connection still works, and replaces it if not. */
  probe(): void {
    void this.#current?.probe()
  }

  /** Closes the connection. A new one replaces it. */
  drop(): void {
    this.#current?.broken.abort()
  }

  async close(): Promise<void> {
    this.#closed.abort()
    this.hurry()
    this.drop()
    const gone = new AbortController()
    await Promise.race([this.#current?.closed, sleep(this.#options.clock, CLOSE_MS, gone.signal)])
    gone.abort()
  }

  async #open(): Promise<void> {
    try {
      this.#current = await this.#connect()
    } catch (error) {
      if (this.#options.mustConnect) throw error
    }
    void this.#stayConnected()
  }

  async #stayConnected(): Promise<void> {
    const { signal } = this.#closed
    const { clock } = this.#options
    for (let waitMs = FIRST_WAIT_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
      if (this.#current !== undefined) {
        await fired(this.#current.broken.signal)
        waitMs = FIRST_WAIT_MS
      }
      // Even after `hurry()`, two attempts are at least this far apart.
      await idle(clock, FIRST_WAIT_MS, signal)
      if (signal.aborted) return
      this.#pause = new AbortController()
      await idle(clock, waitMs * (0.5 + Math.random() / 2) - FIRST_WAIT_MS, this.#pause.signal)
      if (signal.aborted) return
      // The error is dropped: operations of the store report what is wrong with the server.
      this.#current = await this.#connect().catch(() => undefined)
    }
  }

  async #connect(): Promise<Connected> {
    const { open, uses, clock } = this.#options
    const client = open()
    const broken = new AbortController()
    const drop = () => broken.abort()
    client.on('error', drop)
    client.on('end', drop)
    const closed = fired(broken.signal)
      .then(() => client.end())
      .catch(() => {})
    try {
      await driven(client.connect())
      for (const use of uses) await driven(inTime(clock, PREPARE_MS, use.prepare(client)))
      if (broken.signal.aborted || this.#closed.signal.aborted)
        throw new Error('the direct connection was closed at once')
    } catch (error) {
      drop()
      throw error
    }
    client.unref?.()
    broken.signal.addEventListener('abort', () => {
      for (const use of uses) use.broken()
    })
    for (const use of uses) use.ready(this.#isFirst)
    this.#isFirst = false
    const probe = () => inTime(clock, PROBE_ANSWER_MS, client.query('select 1')).then(() => {}, drop)
    void probeOften(clock, probe, broken.signal)
    return { broken, closed, probe }
  }
}

async function probeOften(clock: Clock, probe: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (; !signal.aborted; await probe()) {
    await idle(clock, PROBE_EVERY_MS, signal)
    if (signal.aborted) return
  }
}

function fired(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve())
  })
}

/** Sleeps until the delay is over or the signal fires, without keeping the process alive. */
function idle(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (delayMs <= 0 || signal.aborted) return resolve()
    const finish = () => {
      alarm.close()
      signal.removeEventListener('abort', finish)
      resolve()
    }
    const alarm = setAlarm(clock, delayMs, finish)
    alarm.unref()
    signal.addEventListener('abort', finish)
  })
}
