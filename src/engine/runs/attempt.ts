import type { Clock } from '../../core/clock.js'
import { type ErrorCode, failure } from '../../core/errors.js'
import type { ClaimedRun } from '../../core/store.js'

export const ABORT_REASONS = ['timeout', 'cancel', 'stop', 'lost'] as const

export type AbortReason = (typeof ABORT_REASONS)[number]

const CODES: Readonly<Record<AbortReason, ErrorCode>> = {
  timeout: 'TIMEOUT',
  cancel: 'CANCELLED',
  stop: 'STOPPING',
  lost: 'LEASE_LOST',
}

const MESSAGES: Readonly<Record<AbortReason, string>> = {
  timeout: 'the attempt took longer than its timeout',
  cancel: 'the run was cancelled',
  stop: 'the instance is stopping; the run goes on elsewhere',
  lost: 'the lease on this run was lost; another instance may have it now',
}

/**
 * Receives the aborts and fences of the attempts in one sink call. A call may carry hundreds of attempts, and a promise
 * and a signal for each would cost more than the delivery.
 */
export interface AttemptObserver {
  aborted(attempt: Attempt): void
  fenced(attempt: Attempt): void
}

/** The result of an attempt whose handler has not returned when the abort window is over. */
export const FENCED = Symbol('fenced')

/**
 * One attempt in this process. It ends when its handler returns, or when it was aborted and its abort window is over. In
 * the second case it is fenced: nothing that its handler still does can be committed through Belfry.
 */
export class Attempt {
  readonly run: ClaimedRun
  readonly startedAt: number
  readonly #clock: Clock
  /** Created on first use: most handlers never read the signal. */
  #controller: AbortController | undefined
  #fence: (() => void) | undefined
  #fenced = false
  #cancelTimers: (() => void)[] | undefined
  #observer: AttemptObserver | undefined
  #whenLost: (() => void) | undefined
  #reason: AbortReason | undefined

  constructor(run: ClaimedRun, clock: Clock) {
    this.run = run
    this.#clock = clock
    this.startedAt = clock.monotonic()
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(abortError(this.#reason, this.run))
    }
    return this.#controller.signal
  }

  get reason(): AbortReason | undefined {
    return this.#reason
  }

  /** The result of the work, or `FENCED` if the attempt is fenced first. */
  outcome<T>(work: Promise<T>): Promise<T | typeof FENCED> {
    return new Promise((resolve, reject) => {
      this.#fence = () => resolve(FENCED)
      if (this.#fenced) this.#fence()
      work.then(resolve, reject)
    })
  }

  /**
   * Signals the handler to stop, and fences the attempt when the window is over. The first reason is kept; only `lost`
   * replaces it.
   */
  abort(reason: AbortReason, windowMs: number): void {
    const isFirst = this.#reason === undefined
    // A lost run may already run on another instance, so `lost` replaces any earlier reason: nothing must be written.
    if (isFirst || reason === 'lost') this.#reason = reason
    if (reason === 'lost') this.#whenLost?.()
    if (!isFirst) return
    this.#controller?.abort(abortError(reason, this.run))
    this.#after(windowMs, () => {
      this.#fenced = true
      this.#fence?.()
      this.#observer?.fenced(this)
    })
    this.#observer?.aborted(this)
  }

  /** Reports later aborts and fences to this observer. Earlier ones are not repeated. */
  observe(observer: AttemptObserver | undefined): void {
    this.#observer = observer
  }

  /** Calls back when the lease is lost, even if the attempt was aborted for another reason before. */
  onLost(listener: () => void): void {
    this.#whenLost = listener
    if (this.#reason === 'lost') listener()
  }

  abortAfter(timeoutMs: number, windowMs: number): void {
    this.#after(timeoutMs, () => this.abort('timeout', windowMs))
  }

  /** Cancels the timers of an attempt that is over. */
  end(): void {
    for (const cancel of this.#cancelTimers ?? []) cancel()
    this.#cancelTimers = undefined
  }

  #after(delayMs: number, callback: () => void): void {
    this.#cancelTimers ??= []
    this.#cancelTimers.push(this.#clock.after(delayMs, callback))
  }

  durationMs(): number {
    return this.#clock.monotonic() - this.startedAt
  }
}

export function abortError(reason: AbortReason, run: ClaimedRun) {
  return failure(CODES[reason], `${MESSAGES[reason]} (run ${run.id}, attempt ${run.attempt})`)
}
