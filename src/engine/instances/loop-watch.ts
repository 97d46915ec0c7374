/**
 * Measures the delay of the event loop with a timer. The delay feeds a metric, warnings, and the size of claims, which are
 * smaller while the loop is late. A block is reported when it is over, because the blocked thread cannot report it earlier.
 */
import { type Alarm, type Clock, NO_ALARM, setAlarm } from '../../core/clock.js'
import type { Logger } from '../../core/logger.js'

export interface LoopWatchOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly observe: (delayMs: number) => void
  /** Names the handlers that run now, and the locks that are held. */
  readonly running: () => string
  /** Called at each measurement. */
  readonly onTurn: () => void
}

const EVERY_MS = 500
/** A loop that is this late cannot keep up with the runs that the process has claimed. */
const BUSY_MS = 200
const WARN_MS = 1_000
const WARN_EVERY_MS = 60_000

export class LoopWatch {
  readonly #options: LoopWatchOptions
  #alarm: Alarm = NO_ALARM
  #isOn = false
  #delayMs = 0
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(options: LoopWatchOptions) {
    this.#options = options
  }

  /** Whether the loop was late at the last measurement. */
  get isBusy(): boolean {
    return this.#delayMs > BUSY_MS
  }

  /** Does not keep the process alive. Does nothing on a clock without an event loop. */
  start(): void {
    if (this.#isOn || this.#options.clock.nextTurn === undefined) return
    this.#isOn = true
    this.#measureNext()
  }

  stop(): void {
    this.#isOn = false
    this.#alarm.close()
  }

  #measureNext(): void {
    const { clock } = this.#options
    const dueAt = clock.monotonic() + EVERY_MS
    this.#alarm = setAlarm(clock, EVERY_MS, () => {
      if (!this.#isOn) return
      this.#measure(clock.monotonic() - dueAt)
      this.#measureNext()
    })
    this.#alarm.unref()
  }

  #measure(lateMs: number): void {
    const { observe, running, onTurn } = this.#options
    this.#delayMs = Math.max(lateMs, 0)
    observe(this.#delayMs)
    const handlers = running()
    if (this.#delayMs >= WARN_MS) this.#warn(handlers)
    onTurn()
  }

  #warn(handlers: string): void {
    const { clock, log } = this.#options
    const now = clock.monotonic()
    if (now - this.#warnedAt < WARN_EVERY_MS) return
    this.#warnedAt = now
    const what = 'the event loop was blocked, or the process was stopped'
    const hint = 'move CPU-bound work off the main thread, see docs/cpu-bound-jobs.md'
    log.warn({ blockedMs: Math.round(this.#delayMs), running: handlers }, `${what}: ${hint}`)
  }
}
