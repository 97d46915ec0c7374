/**
 * The beat thread, as the main thread sees it: a worker thread that proves that this process lives while the main loop is
 * blocked (see `backup-beats.ts`). It starts when the instance joins or the first lock is held, and keeps no process alive.
 *
 * - No thread can be had (the store has no data to be opened from, the clock is a test's): beats come from the main loop
 *   alone, and that is said once.
 * - The thread fails: it is said once, and beats come from the main loop alone.
 */
import type { Worker } from 'node:worker_threads'
import type { StoreSource } from '../../core/beat-store.js'
import type { Clock } from '../../core/clock.js'
import { errorRecord, failure } from '../../core/errors.js'
import { isSilent, type Logger } from '../../core/logger.js'
import { startThread } from '../../core/start-thread.js'
import type { Store } from '../../core/store.js'
import type { BeatThreadData, FromBeatThread, RenewedLock, ToBeatThread } from './beat-messages.js'
import { SharedInstant } from './shared-instant.js'

export interface BeatThreadOptions {
  readonly store: Pick<Store, 'reopen'>
  readonly clock: Clock
  readonly log: Logger
  readonly maxBlockMs: number
  /** Told before the thread starts: from then on `turned` is to be called. */
  readonly onStart: () => void
}

const ENTRY = new URL('./beat-worker.js', import.meta.url)
/** How long the thread may take to close its connection. */
const CLOSE_MS = 2_000
const ALONE = 'while the event loop is blocked, this process sends no beats: its work is taken over after the lease'

export class BeatThread {
  readonly #options: BeatThreadOptions
  readonly #turnedAt = new SharedInstant()
  readonly #held = new Map<string, RenewedLock>()
  #dropped: string[] = []
  #flushing = false
  #running = ''
  #worker: Worker | undefined
  #isOver = false

  constructor(options: BeatThreadOptions) {
    this.#options = options
  }

  /** The instance takes part under this id, and has just been accepted by a call that was sent at `sentAt`. */
  live(instance: string, leaseMs: number, heartbeatMs: number, sentAt: number): BeatTimes {
    const times = new BeatTimes()
    times.sent(sentAt)
    const memory = { mainBeatAt: times.main.memory, threadBeatAt: times.thread.memory }
    this.#start()
    this.#post({ kind: 'life', life: { instance, leaseMs, heartbeatMs, ...memory } })
    return times
  }

  /** The instance takes part no more, or under another id. */
  die(): void {
    this.#post({ kind: 'life' })
  }

  /** The thread knows of a lock before the code that asked for it goes on, since that may block the loop at once. */
  hold(lock: RenewedLock): void {
    this.#start()
    if (this.#worker === undefined) return
    this.#held.set(lock.holder, lock)
    if (this.#flushing) return
    this.#flushing = true
    queueMicrotask(() => this.#flush())
  }

  /** A renewal of a lock that was given back changes nothing in the store: the thread hears of it with the next message. */
  drop(holder: string): void {
    if (this.#worker === undefined) return
    this.#held.delete(holder)
    this.#dropped.push(holder)
  }

  /** The main loop turns, with these handlers running. */
  turned(running: string): void {
    this.#turnedAt.moveTo(this.#options.clock.monotonic())
    if (this.#dropped.length > 0) this.#flush()
    if (running === this.#running) return
    this.#running = running
    this.#post({ kind: 'running', running })
  }

  /** Nothing is proven from here on. */
  async stop(): Promise<void> {
    this.#isOver = true
    const worker = this.#worker
    if (worker === undefined) return
    this.#post({ kind: 'close' })
    this.#worker = undefined
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(CLOSE_MS, () => void worker.terminate().then(() => resolve()))
      worker.once('exit', () => {
        cancel()
        resolve()
      })
    })
  }

  #start(): void {
    if (this.#worker !== undefined || this.#isOver) return
    const source = this.#source()
    if (source === undefined) {
      this.#giveUp()
      return
    }
    const { log, maxBlockMs, clock, onStart } = this.#options
    onStart()
    this.#turnedAt.moveTo(clock.monotonic())
    const warns = !isSilent(log, 'warn')
    const data: BeatThreadData = { source, maxBlockMs, turnedAt: this.#turnedAt.memory, warns }
    try {
      const worker = startThread(ENTRY, { workerData: data, name: 'belfry beats', execArgv: [] })
      worker.on('message', ({ level, fields, message }: FromBeatThread) => log[level](fields, message))
      worker.on('error', (error) => this.#failed(error))
      worker.on('exit', (code) => this.#failed(failure('THREAD_ENDED', `the thread ended by itself with code ${code}`)))
      // After the listeners, which would keep the process alive.
      worker.unref()
      this.#worker = worker
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Undefined where no thread can be had, which has then been said. */
  #source(): StoreSource | undefined {
    const { clock, store, log } = this.#options
    // Tests turn the clock, or run the sources, of which a thread can load nothing.
    if (clock.nextTurn === undefined || import.meta.url.endsWith('.ts')) return undefined
    const source = store.reopen?.()
    if (source === undefined) log.info({}, `this store cannot be opened by a second thread: ${ALONE}`)
    else if ('because' in source) log.warn({}, `${source.because}: ${ALONE}`)
    else return source
    return undefined
  }

  #failed(error: unknown): void {
    if (this.#isOver) return
    this.#giveUp()
    this.#options.log.warn({ err: errorRecord(error) }, `the beat thread has failed: ${ALONE}`)
  }

  #giveUp(): void {
    this.#isOver = true
    this.#worker = undefined
    this.#held.clear()
    this.#dropped = []
  }

  #flush(): void {
    this.#flushing = false
    if (this.#held.size === 0 && this.#dropped.length === 0) return
    this.#post({ kind: 'locks', held: [...this.#held.values()], dropped: this.#dropped })
    this.#held.clear()
    this.#dropped = []
  }

  #post(message: ToBeatThread): void {
    this.#worker?.postMessage(message)
  }
}

/** When the newest beat that the store accepted was sent, by whichever thread. One object for each life of an instance. */
export class BeatTimes {
  readonly main = new SharedInstant()
  readonly thread = new SharedInstant()

  sent(at: number): void {
    this.main.moveTo(at)
  }

  get newest(): number {
    return Math.max(this.main.at, this.thread.at)
  }
}
