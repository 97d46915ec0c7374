/**
 * The main thread's side of the beat thread: a worker thread that sends beats while the main loop is blocked
 * (`backup-beats.ts`). It starts when the instance joins or acquires its first lock, and does not keep the process
 * alive.
 *
 * If a second thread cannot open the store, or if the thread fails, only the main loop sends beats. One log line says
 * so.
 */
import type { Worker } from 'node:worker_threads'
import type { Clock } from '../../core/clock.js'
import { errorRecord, failure } from '../../core/errors.js'
import type { StoreSource } from '../../core/instances/beat-store.js'
import { startThread } from '../../core/instances/start-thread.js'
import { isSilent, type Logger } from '../../core/logger.js'
import type { Store } from '../../core/store.js'
import type { BeatThreadData, FromBeatThread, RenewedLock, ToBeatThread } from './beat-messages.js'
import { SharedInstant } from './shared-instant.js'

export interface BeatThreadOptions {
  readonly store: Pick<Store, 'reopen'>
  readonly clock: Clock
  readonly log: Logger
  readonly maxBlockMs: number
  /** Called before the thread starts. From then on the caller must call `loopTurned` regularly. */
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

  /** The instance has joined under this id, by a call that was sent at `sentAt`. */
  startBeats(id: string, leaseMs: number, heartbeatMs: number, sentAt: number): BeatTimes {
    const times = new BeatTimes()
    times.sent(sentAt)
    const memory = { mainBeatAt: times.main.memory, threadBeatAt: times.thread.memory }
    this.#start()
    this.#post({ kind: 'instance', instance: { id, leaseMs, heartbeatMs, ...memory } })
    return times
  }

  /** Called when the instance leaves, and before it takes a new id. */
  endBeats(): void {
    this.#post({ kind: 'instance' })
  }

  /** Sends the lock to the thread before the caller of `lock()` continues, because that code may block the loop at once. */
  hold(lock: RenewedLock): void {
    this.#start()
    if (this.#worker === undefined) return
    this.#held.set(lock.holder, lock)
    if (this.#flushing) return
    this.#flushing = true
    queueMicrotask(() => this.#flush())
  }

  /** Sends the release later, with other messages: the store ignores the renewal of a released lock. */
  drop(holder: string): void {
    if (this.#worker === undefined) return
    this.#held.delete(holder)
    this.#dropped.push(holder)
  }

  /** Tells the thread that the main loop turns, and which handlers it runs. */
  loopTurned(running: string): void {
    this.#turnedAt.moveTo(this.#options.clock.monotonic())
    if (this.#dropped.length > 0) this.#flush()
    if (running === this.#running) return
    this.#running = running
    this.#post({ kind: 'running', running })
  }

  /** Ends the thread, so that no more beats are sent. */
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
      // `unref()` must follow the listeners: adding a listener keeps the process alive again.
      worker.unref()
      this.#worker = worker
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Undefined when a thread is impossible. A reason that users can change is logged. */
  #source(): StoreSource | undefined {
    const { clock, store, log } = this.#options
    // A manual clock has no event loop to block, and a thread cannot load TypeScript sources.
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

/** When each thread sent its newest accepted beat. One object for each id of the instance. */
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
