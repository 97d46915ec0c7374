/**
 * Keeps callers within their quotas. A count is read from the store at most once a second for each prefix, and what this
 * process makes in between is added to it:
 *
 *     read: 7 schedules ── put one, put one ──▶ 9 of 10 used ── one more ──▶ 10 ── one more ──▶ read again, then 409
 *
 * A request reserves its place before it makes something, so requests at once cannot exceed a quota together. Several
 * processes can, by what is in flight in them.
 */
import type { Belfry } from '../../belfry.js'
import { type Clock, systemClock } from '../../core/clock.js'
import { problem } from '../http/problem.js'
import type { Caller } from './caller.js'
import type { Counted } from './quota.js'

const FRESH_MS = 1_000
/** When a quota is used up, its count is read again after this long: something may have ended or been removed. */
const RECHECK_MS = 50
/** Prefixes whose counts are cached. */
const MOST_CACHED = 10_000
/** How far the usage of a caller without a quota is counted. */
const SHOWN = 1_000

/** Places that a request has reserved. */
export interface Reservation {
  readonly granted: number
  /** The error of a request that needs more. */
  refusal(): Error
  /** Ends the reservation. `made` is how many of its places are used from now on. */
  end(made: number): void
}

/** What is known of one kind of things below one prefix. */
interface Tally {
  /** How far `count` was counted: one more than the largest quota so far, so that it shows whether that is exceeded. */
  limit: number
  readAt: number
  count: number
  /** What was made or reserved since the count was read. */
  since: number
  /** Of these, what is only reserved yet. */
  reserved: number
  reading: Promise<void> | undefined
}

const NOUNS: Readonly<Record<Counted, string>> = {
  schedules: 'schedules',
  runs: 'unfinished runs',
  locks: 'held locks',
}

export class Usage {
  readonly #belfry: Belfry
  readonly #clock: Clock
  readonly #tallies = new Map<string, Tally>()

  constructor(belfry: Belfry, clock: Clock = systemClock) {
    this.#belfry = belfry
    this.#clock = clock
  }

  /** Reserves up to `wanted` places, as many as the quota has left. */
  async reserve(caller: Caller, kind: Counted, wanted: number): Promise<Reservation> {
    const quota = caller.quota?.[kind]
    if (quota === undefined || wanted === 0) return UNLIMITED
    const tally = this.#tallyOf(caller, kind)
    await this.#read(tally, caller, kind, FRESH_MS)
    if (tally.count + tally.since + wanted > quota) await this.#read(tally, caller, kind, RECHECK_MS)
    const used = tally.count + tally.since
    const granted = Math.min(Math.max(quota - used, 0), wanted)
    tally.since += granted
    tally.reserved += granted
    return {
      granted,
      refusal: () => exceeded(caller, kind, quota, used),
      end: (made) => {
        tally.reserved -= granted
        tally.since -= granted - Math.min(made, granted)
      },
    }
  }

  /** Does work that makes up to `wanted` things. Throws QUOTA_EXCEEDED before, if the quota has no room for all of them. */
  async within<Result>(
    caller: Caller,
    kind: Counted,
    wanted: number,
    work: () => Promise<Result>,
    madeBy: (result: Result) => number = () => wanted,
  ): Promise<Result> {
    const reservation = await this.reserve(caller, kind, wanted)
    if (reservation.granted < wanted) {
      reservation.end(0)
      throw reservation.refusal()
    }
    // Work that failed may have made something all the same. The next count will tell.
    let made = wanted
    try {
      const result = await work()
      made = madeBy(result)
      return result
    } finally {
      reservation.end(made)
    }
  }

  /** How much of a kind there is below the caller's prefix. */
  async shown(caller: Caller, kind: Counted): Promise<{ count: number; more: boolean; quota?: number }> {
    const quota = caller.quota?.[kind]
    const tally = this.#tallyOf(caller, kind)
    await this.#read(tally, caller, kind, FRESH_MS)
    const most = mostOf(caller, kind)
    const count = Math.min(tally.count + tally.since, most)
    return { count, more: count === most, ...(quota === undefined ? {} : { quota }) }
  }

  #tallyOf(caller: Caller, kind: Counted): Tally {
    const key = `${kind} ${caller.prefix ?? ''}`
    const tally = this.#tallies.get(key) ?? newTally()
    this.#tallies.delete(key)
    this.#tallies.set(key, tally)
    for (const oldest of this.#tallies.keys()) {
      if (this.#tallies.size <= MOST_CACHED) break
      this.#tallies.delete(oldest)
    }
    return tally
  }

  async #read(tally: Tally, caller: Caller, kind: Counted, maxAgeMs: number): Promise<void> {
    if (mostOf(caller, kind) > tally.limit) {
      tally.limit = mostOf(caller, kind)
      tally.readAt = Number.NEGATIVE_INFINITY
      // A read that is under way counts less far.
      await tally.reading?.catch(() => {})
    }
    if (this.#clock.monotonic() - tally.readAt <= maxAgeMs) return
    tally.reading ??= this.#readNow(tally, caller.prefix ?? '', kind).finally(() => {
      tally.reading = undefined
    })
    await tally.reading
  }

  /** What was reserved when the read began may be in the count already, or not yet: it counts in any case. */
  async #readNow(tally: Tally, prefix: string, kind: Counted): Promise<void> {
    const readAt = this.#clock.monotonic()
    const { since, reserved, limit } = tally
    tally.count = await this.#count(prefix, kind, limit)
    tally.since += reserved - since
    // With a larger limit meanwhile, the next request reads again.
    if (limit === tally.limit) tally.readAt = readAt
  }

  async #count(prefix: string, kind: Counted, limit: number): Promise<number> {
    const { schedules, runs, locks } = this.#belfry
    if (kind === 'schedules') return schedules.count({ prefix, limit })
    if (kind === 'runs') return runs.count({ prefix, limit })
    return (await locks.list({ prefix, limit })).items.length
  }
}

const UNLIMITED: Reservation = {
  granted: Number.POSITIVE_INFINITY,
  refusal: () => new Error('there is no quota'),
  end: () => {},
}

function newTally(): Tally {
  return { limit: 0, readAt: Number.NEGATIVE_INFINITY, count: 0, since: 0, reserved: 0, reading: undefined }
}

function mostOf({ quota }: Caller, kind: Counted): number {
  return (quota?.[kind] ?? SHOWN) + 1
}

function exceeded({ name, prefix }: Caller, kind: Counted, quota: number, used: number): Error {
  const where = prefix === undefined ? '' : ` below "${prefix}"`
  const most = `"${name}" may have at most ${quota} ${NOUNS[kind]}${where}`
  return problem(409, 'QUOTA_EXCEEDED', `${most}, and ${used} are there or being made`, {
    hint: 'remove some, wait until some have ended, or use a token with a larger quota',
    members: { quota, used },
  })
}
