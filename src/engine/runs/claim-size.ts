import type { ClaimResult } from '../../core/store.js'

/** A little more than half of a thousand that are due at once. */
const SMALL = 512
const SMALL_CLAIMS = 2

/**
 * How many runs one claim takes. The runs of a claim start together, once all of it is written, so the first claims of a
 * burst are small and start half of a thousand runs early. Later claims are large, because large claims are cheaper.
 */
export class ClaimSize {
  readonly #batch: number
  /** How many claims in a row were full. */
  #full = 0
  #isMuch = false

  constructor(batch: number) {
    this.#batch = batch
  }

  get most(): number {
    return this.#full < SMALL_CLAIMS ? Math.min(SMALL, this.#batch) : this.#batch
  }

  /** Whether the newest group of due runs needed more than one claim. The next group probably does too. */
  get isMuch(): boolean {
    return this.#isMuch
  }

  /** Whether the last claim was full. */
  get isFull(): boolean {
    return this.#full > 0
  }

  took(count: number, isFull: boolean): void {
    if (isFull) this.#isMuch = true
    else if (this.#full === 0 && count > 0) this.#isMuch = false
    this.#full = isFull ? this.#full + 1 : 0
  }
}

/**
 * How long to wait before the next claim, so that it reaches the store when the next run is ready. The wait counts from
 * when the last claim was sent, because the next one takes about as long to reach the store.
 */
export function untilReady({ now, nextReadyAt }: ClaimResult, sinceSentMs: number): number {
  return nextReadyAt === undefined ? Number.POSITIVE_INFINITY : Math.max(nextReadyAt - now - sinceSentMs, 1)
}
