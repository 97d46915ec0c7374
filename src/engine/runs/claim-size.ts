import type { ClaimResult } from '../../core/store.js'

/** A small claim: of a thousand runs that are due at once, it starts a little more than half. */
const SMALL = 512
const SMALL_CLAIMS = 2

/**
 * Sizes the claims of a burst. The runs of a claim start together, when the whole claim is written, so small claims start
 * their runs sooner. Large claims cost less per run. So the first two claims are small, and later ones take a whole batch.
 */
export class ClaimSize {
  readonly #batch: number
  /** The number of claims in a row that were full. */
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
