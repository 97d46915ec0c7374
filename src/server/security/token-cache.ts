/**
 * Remembers for a moment who was let in, so that a request costs no look into the store each time and a revocation still
 * holds within that moment. Only those who were let in are remembered: whoever guesses cannot push them out.
 *
 * The moment begins when the store was asked, not when it answered. Requests that come while it is being asked wait for
 * the same answer.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../core/clock.js'

/** How long a revoked token or an ended session may still be let in, at the most. */
export const TRUST_MS = 2_000
const MOST = 10_000

interface Remembered<Value> {
  readonly until: number
  readonly answer: Promise<Value | undefined>
}

export class BriefTrust<Value> {
  readonly #clock: Clock
  readonly #ask: (shown: string) => Promise<Value | undefined>
  readonly #remembered = new Map<string, Remembered<Value>>()
  /** Who was let in the last time, however long ago. */
  readonly #good = new Set<string>()

  constructor(clock: Clock, ask: (shown: string) => Promise<Value | undefined>) {
    this.#clock = clock
    this.#ask = ask
  }

  get size(): number {
    return this.#remembered.size
  }

  check(shown: string): Promise<Value | undefined> {
    const key = keyOf(shown)
    const now = this.#clock.monotonic()
    const known = this.#remembered.get(key)
    if (known !== undefined && known.until > now) return known.answer
    const answer = this.#ask(shown)
    const remembered = { until: now + TRUST_MS, answer }
    this.#remembered.delete(key)
    this.#remembered.set(key, remembered)
    this.#makeRoom()
    const forget = () => {
      if (this.#remembered.get(key) === remembered) this.#remembered.delete(key)
    }
    answer.then((value) => {
      this.#good.delete(key)
      if (value === undefined) forget()
      else this.#good.add(key)
    }, forget)
    return answer
  }

  /** Whether it was good when it was last asked for, or is being asked for: then it is no guess. */
  wasGood(shown: string): boolean {
    const key = keyOf(shown)
    return this.#good.has(key) || this.#remembered.has(key)
  }

  forget(shown: string): void {
    this.#remembered.delete(keyOf(shown))
  }

  #makeRoom(): void {
    for (const each of [this.#remembered, this.#good]) {
      for (const oldest of each.keys()) {
        if (each.size <= MOST) break
        each.delete(oldest)
      }
    }
  }
}

/** A hash, so that how long the search takes says nothing about what it is compared with. */
function keyOf(shown: string): string {
  return createHash('sha256').update(shown).digest('base64')
}
