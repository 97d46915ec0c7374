/**
 * One connection to the server itself, for what a pooler would take away: LISTEN, and the lock that proves that this
 * process lives. When it breaks it is opened again, ever less often, for as long as the store is open.
 *
 * A connection that only listens would never notice that nothing arrives any more. So it is asked for a sign of life now
 * and then, and one that gives none is replaced.
 */
import { type Clock, NO_ALARM, setAlarm, sleep } from '../../../core/clock.js'
import { inTime } from '../../../core/in-time.js'
import { driven } from './errors.js'

/** What is called of a client of `pg` that is used for this alone. */
export interface DirectClient {
  /** The server process at the other end, as the server announced it. */
  readonly processID?: number | null
  connect(): Promise<unknown>
  query(sql: string): Promise<{ readonly rows: readonly unknown[] }>
  on(event: 'notification', listener: (message: { readonly payload?: string | undefined }) => void): unknown
  on(event: 'error' | 'end', listener: () => void): unknown
  /** Lets the process end although it is connected. */
  unref?(): void
  end(): Promise<void>
}

/** What the connection is for. */
export interface DirectUse {
  /** Sets a new connection up. If it throws, or the connection breaks meanwhile, there is another one later. */
  prepare(client: DirectClient): Promise<void>
  /** The connection that was set up last is good. */
  ready(first: boolean): void
  /** It broke: told once, and before anything else happens. */
  broken(): void
}

export interface DirectOptions {
  readonly open: () => DirectClient
  readonly clock: Clock
  readonly uses: readonly DirectUse[]
  /** Whether `open` fails when the first attempt does. */
  readonly insist: boolean
}

interface Connected {
  readonly broken: Promise<void>
  /** Resolves when it is closed, too: one that hangs may take its time. */
  readonly ended: Promise<void>
  readonly drop: () => void
}

const FIRST_WAIT_MS = 100
const MAX_WAIT_MS = 5_000
const CLOSE_MS = 1_000
const PREPARE_MS = 10_000
const ASK_EVERY_MS = 10_000
const ANSWER_MS = 5_000

export class DirectConnection {
  readonly #options: DirectOptions
  readonly #closed = new AbortController()
  #opened: Promise<void> | undefined
  #hurry = () => {}
  #current: Connected | undefined
  #first = true

  constructor(options: DirectOptions) {
    this.#options = options
  }

  /** Resolves when the first connection is good, or has failed and there is no insisting. Opens once. */
  open(): Promise<void> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  /** Somebody needs it: the next attempt comes now, if the last one was not a moment ago. */
  hurry(): void {
    this.#hurry()
  }

  /** Gives the connection up, for a new one. */
  drop(): void {
    this.#current?.drop()
  }

  async close(): Promise<void> {
    this.#closed.abort()
    this.#hurry()
    this.drop()
    const patience = new AbortController()
    await Promise.race([this.#current?.ended, sleep(this.#options.clock, CLOSE_MS, patience.signal)])
    patience.abort()
  }

  async #open(): Promise<void> {
    try {
      this.#current = await this.#connect()
    } catch (error) {
      if (this.#options.insist) throw error
    }
    void this.#stayConnected()
  }

  async #stayConnected(): Promise<void> {
    const { signal } = this.#closed
    for (let waitMs = FIRST_WAIT_MS; !signal.aborted; ) {
      if (this.#current !== undefined) {
        await this.#current.broken
        waitMs = FIRST_WAIT_MS
      }
      await this.#sleep(Math.min(waitMs, FIRST_WAIT_MS), signal)
      await this.#rest(waitMs * (0.5 + Math.random() / 2) - FIRST_WAIT_MS)
      if (signal.aborted) return
      waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)
      // Whatever is wrong with it, the store itself will say so.
      this.#current = await this.#connect().catch(() => undefined)
    }
  }

  async #rest(waitMs: number): Promise<void> {
    if (waitMs <= 0 || this.#closed.signal.aborted) return
    const over = new AbortController()
    this.#hurry = () => over.abort()
    await this.#sleep(waitMs, over.signal)
    this.#hurry = () => {}
  }

  /** Keeps no process alive, as the connection that it waits for would not. */
  async #sleep(delayMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    await new Promise<void>((resolve) => {
      const finish = () => {
        alarm.close()
        signal.removeEventListener('abort', finish)
        resolve()
      }
      const alarm = setAlarm(this.#options.clock, delayMs, finish)
      alarm.unref()
      signal.addEventListener('abort', finish)
    })
  }

  async #connect(): Promise<Connected> {
    const { open, uses, clock } = this.#options
    const client = open()
    let state: 'opening' | 'good' | 'broken' = 'opening'
    let stopAsking = () => {}
    const [broken, ended] = [deferred(), deferred()]
    const breaks = () => {
      if (isBroken()) return
      stopAsking()
      const wasGood = state === 'good'
      state = 'broken'
      if (wasGood) for (const use of uses) use.broken()
      broken.resolve()
      client.end().then(ended.resolve, ended.resolve)
    }
    client.on('error', breaks)
    client.on('end', breaks)
    try {
      await driven(client.connect())
      for (const use of uses) await driven(inTime(clock, PREPARE_MS, use.prepare(client)))
      if (isBroken() || this.#closed.signal.aborted) throw new Error('the direct connection was closed at once')
    } catch (error) {
      breaks()
      throw error
    }
    state = 'good'
    // It only hears of what others did: a script that is done may end.
    client.unref?.()
    for (const use of uses) use.ready(this.#first)
    this.#first = false
    stopAsking = askForLife(clock, client, breaks)
    return { broken: broken.promise, ended: ended.promise, drop: breaks }

    function isBroken(): boolean {
      return state === 'broken'
    }
  }
}

/** Asks again and again; one that does not answer is told of. Ends when it is told to. */
function askForLife(clock: Clock, client: DirectClient, onSilent: () => void): () => void {
  let alarm = NO_ALARM
  let ended = false
  const ask = () => void inTime(clock, ANSWER_MS, client.query('select 1')).then(askLater, onSilent)
  function askLater(): void {
    if (ended) return
    alarm = setAlarm(clock, ASK_EVERY_MS, ask)
    alarm.unref()
  }
  askLater()
  return () => {
    ended = true
    alarm.close()
  }
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
