import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { afterPrefix } from '../../../core/names/text-order.js'
import type { CountQuery } from '../../../core/store.js'
import { row } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import source from './count.sql'

type Range = { prefix: string; beyond: string; limit: number }
const selectCount = row<Range, { count: number }>(source, 'countSchedules')

export function countSchedules(snapshot: Snapshot, { prefix, limit }: CountQuery): number {
  checkPageLimit(limit)
  return selectCount(snapshot, { prefix, beyond: afterPrefix(prefix), limit })?.count ?? 0
}
