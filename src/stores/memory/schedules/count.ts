import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { CountQuery } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'

export function countSchedules(state: MemoryState, { prefix, limit }: CountQuery): number {
  checkPageLimit(limit)
  let count = 0
  for (const id of state.sortedIds.from(prefix)) {
    if (count === limit || !id.startsWith(prefix)) break
    count += 1
  }
  return count
}
