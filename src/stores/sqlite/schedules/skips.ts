import type { SkipReason } from '../../../core/policies.js'
import type { SkipRange } from '../../../core/schedules/plan.js'
import { statement } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import source from './skips.sql'

type Range = { schedule: string; from: number; to: number }
type SkipRow = { from_at: number; to_at: number; count: number; reason: SkipReason }

const insertSkip = statement<Range & { count: number; reason: string; now: number }>(source, 'addSkip')
const listSkips = statement<Range & { limit: number }, SkipRow>(source, 'listSkips')

export function addSkip({ db, now }: Tx, schedule: string, { from, to, count, reason }: SkipRange): void {
  db.run(insertSkip, { schedule, from, to, count, reason, now })
}

export function skippedRanges(
  { db }: Snapshot,
  schedule: string,
  from: number,
  to: number,
  limit: number,
): SkipRange[] {
  const rows = db.all(listSkips, { schedule, from, to, limit })
  return rows.map(({ from_at, to_at, count, reason }) => ({ from: from_at, to: to_at, count, reason }))
}
