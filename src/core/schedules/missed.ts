import type { Timeline } from '../../time/timeline.js'
import type { Missed, MissedPolicy } from '../policies.js'

/** How a missed policy treats the ticks of an outage. */
interface CatchUpRule {
  /** Ticks older than this are dropped. */
  readonly maxAgeMs: (missed: Missed) => number
  /** The most ticks that are kept, which are the newest. */
  readonly limit: (missed: Missed) => number
  /** Whether ticks that were recorded before the outage and never started are dropped too. */
  readonly retracts: boolean
}

const withinMs = (missed: Missed) => missed.withinMs ?? Number.POSITIVE_INFINITY

export const CATCH_UP: Readonly<Record<MissedPolicy, CatchUpRule>> = {
  skip: { maxAgeMs: ({ graceMs }) => graceMs, limit: () => 1, retracts: false },
  latest: { maxAgeMs: withinMs, limit: () => 1, retracts: true },
  all: { maxAgeMs: withinMs, limit: ({ max }) => max, retracts: false },
}

/** After an outage: the instant up to which the missed policy drops all ticks. */
export function lastMissed(missed: Missed, line: Timeline, cursor: number, now: number): number {
  const rule = CATCH_UP[missed.policy]
  const newest = line.previous(now + 1) ?? cursor
  const tooOld = Math.max(cursor, now - rule.maxAgeMs(missed) - 1)
  if (newest <= tooOld) return now
  const limit = rule.limit(missed)
  if (limit > 1 && line.count(tooOld, now) <= limit) return tooOld
  let oldestKept = newest
  for (let count = 1; count < limit; count += 1) oldestKept = line.previous(oldestKept) ?? oldestKept
  return oldestKept - 1
}
