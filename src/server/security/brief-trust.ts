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
      if (value === undefined) forget()
    }, forget)
    return answer
  }

  /** Whether it needs no look into the store. */
  remembers(shown: string): boolean {
    const known = this.#remembered.get(keyOf(shown))
    return known !== undefined && known.until > this.#clock.monotonic()
  }

  forget(shown: string): void {
    this.#remembered.delete(keyOf(shown))
  }

  #makeRoom(): void {
    for (const oldest of this.#remembered.keys()) {
      if (this.#remembered.size <= MOST) return
      this.#remembered.delete(oldest)
    }
  }
}

/** A hash, so that how long the search takes says nothing about what it is compared with. */
function keyOf(shown: string): string {
  return createHash('sha256').update(shown).digest('base64')
}
