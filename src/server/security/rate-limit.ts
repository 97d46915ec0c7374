/** Token-bucket rate limits, one bucket per caller, address or token. The number of buckets is bounded. */
import type { Clock } from '../../core/clock.js'
import { problem } from '../http/problem.js'

export interface Rate {
  readonly perSecond: number
  /** The size of the bucket: how many requests may come at once after a pause. */
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

  /** Takes one token from the bucket and returns 0; from an empty bucket, returns the milliseconds until the next token. */
  take(key: string): number {
    const bucket = this.#bucket(key)
    if (bucket.left >= 1) {
      bucket.left -= 1
      return 0
    }
    return this.#msUntil(bucket, 1)
  }

  /** Takes any amount from the bucket, even if it holds less. */
  charge(key: string, amount: number): void {
    this.#bucket(key).left -= amount
  }

  /** Returns the milliseconds until the bucket is no longer empty. */
  wait(key: string): number {
    const bucket = this.#bucket(key)
    return bucket.left > 0 ? 0 : Math.max(this.#msUntil(bucket, 0), 1)
  }

  #msUntil({ left }: Bucket, amount: number): number {
    return Math.ceil(((amount - left) / this.#rate.perSecond) * 1_000)
  }

  giveBack(key: string): void {
    const bucket = this.#bucket(key)
    bucket.left = Math.min(bucket.left + 1, this.#rate.burst)
  }

  /** The bucket, refilled up to now. Each use moves it to the map's end, so that the least recently used is evicted first. */
  #bucket(key: string): Bucket {
    const now = this.#clock.monotonic()
    const { perSecond, burst } = this.#rate
    const bucket = this.#buckets.get(key) ?? { left: burst, filledAt: now }
    bucket.left = Math.min(burst, bucket.left + ((now - bucket.filledAt) / 1_000) * perSecond)
    bucket.filledAt = now
    this.#buckets.delete(key)
    this.#buckets.set(key, bucket)
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= MOST_BUCKETS) break
      this.#buckets.delete(oldest)
    }
    return bucket
  }
}

/** Throws RATE_LIMITED unless `waitMs` is 0. */
export function mustWait(waitMs: number, what: string): void {
  if (waitMs <= 0) return
  const seconds = String(Math.max(Math.ceil(waitMs / 1_000), 1))
  throw problem(429, 'RATE_LIMITED', `too many ${what}`, {
    hint: `wait for ${seconds} s`,
    headers: { 'retry-after': seconds },
  })
}

/** The key of an address's bucket. All addresses of an IPv6 /64 share a bucket, because one client can use them all. */
export function addressKey(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array<string>(Math.max(8 - before.length - after.length, 0)).fill('0')
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`
}
