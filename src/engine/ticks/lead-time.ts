/**
 * Recording usually begins this share of the look-ahead before a tick. The rest is left to claims of runs that are due now.
 */
const USUAL_PART = 0.7
/** The next recording is expected to take at most this many times as long as the last. */
const RESERVE = 1.5

/**
 * How long before a tick its recording begins. After a slow recording the next one begins earlier, up to the whole
 * look-ahead. It usually begins later than that: with a look-ahead of one second, schedules that tick every second
 * would otherwise be recorded exactly when their previous ticks start.
 */
export class LeadTime {
  readonly #lookaheadMs: number
  readonly #usualMs: number
  #ms: number
  #spentMs = 0
  #schedules = 0

  constructor(lookaheadMs: number) {
    this.#lookaheadMs = lookaheadMs
    this.#usualMs = lookaheadMs * USUAL_PART
    this.#ms = this.#usualMs
  }

  get ms(): number {
    return this.#ms
  }

  /** Measures one step of a recording. The last step leaves no schedule due. */
  observe(ms: number, schedules: number, isLastStep: boolean): void {
    this.#spentMs += ms
    this.#schedules += schedules
    if (!isLastStep) return
    if (this.#schedules > 0) this.#ms = Math.min(Math.max(this.#spentMs * RESERVE, this.#usualMs), this.#lookaheadMs)
    this.#spentMs = 0
    this.#schedules = 0
  }
}
