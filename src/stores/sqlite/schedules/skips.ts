import type { SkipReason } from '../../../core/policies.js'
import type { SkipRange } from '../../../core/schedules/plan.js'
import { change, rows } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import source from './skips.sql'

type Range = { schedule: string; from: number; to: number }
type SkipRow = { from_at: number; to_at: number; count: number; reason: SkipReason }

const insertSkip = change<Range & { count: number; reason: string }>(source, 'addSkip')
const listSkips = rows<Range & { limit: number }, SkipRow>(source, 'listSkips')

export function addSkip(tx: Tx, schedule: string, { from, to, count, reason }: SkipRange): void {
  insertSkip(tx, { schedule, from, to, count, reason })
}

export function skippedRanges(
  snapshot: Snapshot,
  schedule: string,
  from: number,
  to: number,
  limit: number,
): SkipRange[] {
  return listSkips(snapshot, { schedule, from, to, limit }).map(({ from_at, to_at, count, reason }) => ({
    from: from_at,
    to: to_at,
    count,
    reason,
  }))
}
