import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { CountQuery } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import { listSchedules } from './list.js'

export function countSchedules(state: MemoryState, { prefix, limit }: CountQuery): number {
  checkPageLimit(limit)
  return listSchedules(state, { prefix, limit }).items.length
}
