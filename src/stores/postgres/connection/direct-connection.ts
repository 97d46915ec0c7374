/**
 * One connection to the server itself, for what does not work through a pooler: LISTEN, and the advisory lock that proves
 * life. While the store is open, a broken connection is replaced, after 0.1 s at first and up to 5 s later.
 *
 * A connection that only listens would never notice that it is half-open. So it sends a statement every 10 s, and at once
 * when a connection of the pool has become silent. When no answer comes within 5 s, the connection is replaced.
 */
import { type Clock, NO_ALARM, setAlarm, sleep } from '../../../core/clock.js'
import { inTime } from '../../../core/connection/in-time.js'
import type { DirectClient } from './driver.js'
import { driven } from './errors.js'

/** What the connection is used for. */
export interface DirectUse {
  /** Sets up a new connection. When it throws, the connection is closed, and another is opened later. */
  prepare(client: DirectClient): Promise<void>
  /** All uses have prepared the connection. */
  ready(isFirst: boolean): void
  /** Called once, as soon as a connection that was ready breaks. */
  broken(): void
}

export interface DirectOptions {
  readonly open: () => DirectClient
  readonly clock: Clock
  readonly uses: readonly DirectUse[]
  /** Whether `open` fails when the first attempt to connect does. */
  readonly mustConnect: boolean
}

interface Connected {
  readonly broken: Promise<void>
  /** Resolves when the connection is closed, which may take long after it broke. */
  readonly closed: Promise<void>
  readonly drop: () => void
  /** Sends a statement now. */
  readonly probe: () => void
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

  /** Connects, once; without `mustConnect` it also resolves when the first attempt has failed. */
  open(): Promise<void> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  /** Ends a pause between two attempts, for an operation that needs the connection now. */
  hurry(): void {
    this.#pause.abort()
  }

  /** Asks now whether the connection still works, and replaces it if not. */
  probe(): void {
    this.#current?.probe()
  }

  /** Replaces the connection by a new one. */
  drop(): void {
    this.#current?.drop()
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
        await this.#current.broken
        waitMs = FIRST_WAIT_MS
      }
      // Even in a hurry, attempts are never closer than this.
      await idle(clock, FIRST_WAIT_MS, signal)
      if (signal.aborted) return
      this.#pause = new AbortController()
      await idle(clock, waitMs * (0.5 + Math.random() / 2) - FIRST_WAIT_MS, this.#pause.signal)
      if (signal.aborted) return
      // Operations of the store report what is wrong with the server.
      this.#current = await this.#connect().catch(() => undefined)
    }
  }

  async #connect(): Promise<Connected> {
    const { open, uses, clock } = this.#options
    const client = open()
    let state: 'opening' | 'ready' | 'broken' = 'opening'
    const probes = new Probes(clock, client, () => drop())
    const [broken, closed] = [deferred(), deferred()]
    const drop = () => {
      if (isBroken()) return
      probes.stop()
      const wasReady = state === 'ready'
      state = 'broken'
      if (wasReady) for (const use of uses) use.broken()
      broken.resolve()
      client.end().then(closed.resolve, closed.resolve)
    }
    client.on('error', drop)
    client.on('end', drop)
    try {
      await driven(client.connect())
      for (const use of uses) await driven(inTime(clock, PREPARE_MS, use.prepare(client)))
      if (isBroken() || this.#closed.signal.aborted) throw new Error('the direct connection was closed at once')
    } catch (error) {
      drop()
      throw error
    }
    state = 'ready'
    client.unref?.()
    for (const use of uses) use.ready(this.#isFirst)
    this.#isFirst = false
    probes.later()
    return { broken: broken.promise, closed: closed.promise, drop, probe: () => probes.now() }

    function isBroken(): boolean {
      return state === 'broken'
    }
  }
}

/** Sends a statement now and then until it is stopped. */
class Probes {
  readonly #clock: Clock
  readonly #client: DirectClient
  readonly #onSilence: () => void
  #alarm = NO_ALARM
  #isStopped = false

  constructor(clock: Clock, client: DirectClient, onSilence: () => void) {
    this.#clock = clock
    this.#client = client
    this.#onSilence = onSilence
  }

  later(): void {
    this.#alarm.close()
    if (this.#isStopped) return
    this.#alarm = setAlarm(this.#clock, PROBE_EVERY_MS, () => this.now())
    this.#alarm.unref()
  }

  now(): void {
    this.#alarm.close()
    if (this.#isStopped) return
    inTime(this.#clock, PROBE_ANSWER_MS, this.#client.query('select 1')).then(() => this.later(), this.#onSilence)
  }

  stop(): void {
    this.#isStopped = true
    this.#alarm.close()
  }
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

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
