/** How much there may be below a token's prefix, and how fast the token may import. */
import { failure, quote } from '../../core/errors.js'

export interface Quota {
  /** Schedules whose ids begin with the prefix. */
  readonly schedules?: number
  /** Unfinished runs of those, and of jobs and sinks whose names begin with it. Ticks count, but are never refused. */
  readonly runs?: number
  /** Held locks, exclusive keys of running runs included. */
  readonly locks?: number
  /** Lines that imports take in a second. */
  readonly importRate?: number
}

/** What a quota limits by a count. */
export const COUNTED = ['schedules', 'runs', 'locks'] as const
export type Counted = (typeof COUNTED)[number]

/** A count reads as many rows as the quota has, so these bound its cost. */
const MOST: Readonly<Record<keyof Quota, number>> = {
  schedules: 100_000,
  runs: 100_000,
  locks: 1_000,
  importRate: 1_000_000,
}

export function isQuota(quota: unknown): quota is Quota {
  return problemOf(quota) === undefined
}

/** Checks the quota of a new token. */
export function checkQuota(quota: unknown): Quota {
  if (isQuota(quota)) return quota
  throw failure('OPTION_INVALID', `the quota of a token ${problemOf(quota)}`)
}

function problemOf(quota: unknown): string | undefined {
  if (typeof quota !== 'object' || quota === null || Array.isArray(quota))
    return `is ${quote(quota)}; it must be an object`
  for (const [name, value] of Object.entries(quota)) {
    if (!Object.hasOwn(MOST, name)) return `has no ${quote(name)}; it has ${Object.keys(MOST).join(', ')}`
    const [least, most] = [name === 'importRate' ? 1 : 0, MOST[name as keyof Quota]]
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      return `has ${name} ${quote(value)}; it must be a whole number from ${least} to ${most}`
    }
  }
  return undefined
}
