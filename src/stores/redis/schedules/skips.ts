import type { SkipReason } from '../../../core/policies.js'
import type { SkipRange } from '../../../core/schedules/plan.js'
import { shardOf } from '../cluster/shards.js'
import type { Server } from '../connection/server.js'

/**
 * Reads from a set that is sorted by the last tick of each range. A member is `<number> <from> <to> <count> <reason>`.
 */
export async function skippedRanges(
  server: Server,
  schedule: string,
  from: number,
  to: number,
  limit: number,
): Promise<SkipRange[]> {
  const command = ['ZRANGEBYSCORE', `schedule-skips:${schedule}`, String(from), '+inf', 'LIMIT', '0', String(limit)]
  const ranges = await server.readTexts(shardOf(schedule, server.shards), command)
  return ranges
    .sort()
    .map((range) => {
      const [, first, last, count, reason] = range.split(' ')
      return { from: Number(first), to: Number(last), count: Number(count), reason: reason as SkipReason }
    })
    .filter((range) => range.from <= to)
    .sort((one, other) => one.from - other.from)
}
