/**
 * Caches valid tokens and sessions for two seconds: most requests need no lookup in the store, and a revocation still takes
 * effect within that time. Invalid ones do not stay cached, so that guesses cannot evict valid ones.
 *
 * The two seconds begin when the lookup starts, not when it is answered. Concurrent requests share one lookup.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../core/clock.js'

/** How long a revoked token or an ended session may still be accepted. */
export const TRUST_MS = 2_000
const MOST = 10_000

interface Cached<Value> {
  readonly until: number
  readonly answer: Promise<Value | undefined>
}

export class TokenCache<Value> {
  readonly #clock: Clock
  readonly #lookUp: (text: string) => Promise<Value | undefined>
  readonly #cached = new Map<string, Cached<Value>>()
  /** Keys that were valid at their latest lookup, however long ago. */
  readonly #valid = new Set<string>()

  constructor(clock: Clock, lookUp: (text: string) => Promise<Value | undefined>) {
    this.#clock = clock
    this.#lookUp = lookUp
  }

  get size(): number {
    return this.#cached.size
  }

  check(text: string): Promise<Value | undefined> {
    const key = keyOf(text)
    const now = this.#clock.monotonic()
    const known = this.#cached.get(key)
    if (known !== undefined && known.until > now) return known.answer
    const answer = this.#lookUp(text)
    const cached = { until: now + TRUST_MS, answer }
    this.#cached.delete(key)
    this.#cached.set(key, cached)
    this.#evict()
    const forget = () => {
      if (this.#cached.get(key) === cached) this.#cached.delete(key)
    }
    answer.then((value) => {
      this.#valid.delete(key)
      if (value === undefined) forget()
      else this.#valid.add(key)
    }, forget)
    return answer
  }

  /** Whether the text was valid at its latest lookup, or is being looked up now. */
  wasValid(text: string): boolean {
    const key = keyOf(text)
    return this.#valid.has(key) || this.#cached.has(key)
  }

  forget(text: string): void {
    this.#cached.delete(keyOf(text))
  }

  #evict(): void {
    for (const each of [this.#cached, this.#valid]) {
      for (const oldest of each.keys()) {
        if (each.size <= MOST) break
        each.delete(oldest)
      }
    }
  }
}

/** A hash, so that the duration of the map lookup reveals nothing about cached tokens. */
function keyOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
