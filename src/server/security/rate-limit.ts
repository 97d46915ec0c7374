/** How often somebody may ask: a bucket for each, which fills at a steady pace. Memory is bounded, whoever asks. */
import type { Clock } from '../../core/clock.js'
import { problem } from '../http/problem.js'

export interface Rate {
  readonly perSecond: number
  /** How many at once, after a quiet while. */
  readonly burst: number
}

interface Bucket {
  left: number
  filledAt: number
}

const MOST_BUCKETS = 10_000

export class RateLimit {
  readonly #clock: Clock
  readonly #rate: Rate
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Clock, rate: Rate) {
    this.#clock = clock
    this.#rate = rate
  }

  get size(): number {
    return this.#buckets.size
  }

  /** Takes one, and answers 0; or answers after how many milliseconds there will be one. */
  take(who: string): number {
    const bucket = this.#bucket(who)
    if (bucket.left >= 1) {
      bucket.left -= 1
      return 0
    }
    return Math.ceil(((1 - bucket.left) / this.#rate.perSecond) * 1_000)
  }

  giveBack(who: string): void {
    const bucket = this.#bucket(who)
    bucket.left = Math.min(bucket.left + 1, this.#rate.burst)
  }

  /** Filled up to now, and the last to be forgotten. */
  #bucket(who: string): Bucket {
    const now = this.#clock.monotonic()
    const { perSecond, burst } = this.#rate
    const bucket = this.#buckets.get(who) ?? { left: burst, filledAt: now }
    bucket.left = Math.min(burst, bucket.left + ((now - bucket.filledAt) / 1_000) * perSecond)
    bucket.filledAt = now
    this.#buckets.delete(who)
    this.#buckets.set(who, bucket)
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= MOST_BUCKETS) break
      this.#buckets.delete(oldest)
    }
    return bucket
  }
}

/** Refuses whoever has to wait. */
export function mustWait(waitMs: number, what: string): void {
  if (waitMs <= 0) return
  const seconds = String(Math.max(Math.ceil(waitMs / 1_000), 1))
  throw problem(429, 'RATE_LIMITED', `too many ${what}`, {
    hint: `wait for ${seconds} s`,
    headers: { 'retry-after': seconds },
  })
}

/** Who has one IPv6 address has 2^64 of them. */
export function addressKey(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array<string>(Math.max(8 - before.length - after.length, 0)).fill('0')
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`
}
