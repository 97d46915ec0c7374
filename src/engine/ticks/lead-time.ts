/** The part of the look-ahead in which recording takes place. The rest is left to claims of what is due now. */
const USUAL_PART = 0.7
/** How many times as long as the last recording the next one may take. */
const RESERVE = 1.5

/**
 * How long before a tick its recording begins. Without a part left to claims, schedules that tick every second would be
 * recorded just when their previous ticks are to start. Recording begins earlier when the last one took long.
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

  /** One step took this long for so many schedules; the last step of a recording leaves none that are due. */
  observe(ms: number, schedules: number, isLastStep: boolean): void {
    this.#spentMs += ms
    this.#schedules += schedules
    if (!isLastStep) return
    if (this.#schedules > 0) this.#ms = Math.min(Math.max(this.#spentMs * RESERVE, this.#usualMs), this.#lookaheadMs)
    this.#spentMs = 0
    this.#schedules = 0
  }
}
