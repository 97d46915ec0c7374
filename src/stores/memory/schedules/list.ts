import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import { matchesSchedule } from '../../../core/schedules/schedule-query.js'
import type { Page, ScheduleQuery } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'

/** Stored schedules are replaced, never changed, so callers get the frozen object itself. */
export function getSchedule(state: MemoryState, id: string): Schedule | undefined {
  return Object.freeze(state.schedules.get(id)?.schedule)
}

export function listSchedules(state: MemoryState, query: ScheduleQuery): Page<Schedule> {
  checkPageLimit(query.limit)
  const ids = query.unstamped ? [...state.unstamped].sort() : sortedIds(state)
  const prefix = query.prefix ?? ''
  const items: Schedule[] = []
  const first = firstIndex(ids, query.after, prefix)
  const { look = Number.POSITIVE_INFINITY } = query
  for (let at = first; at < ids.length; at += 1) {
    const id = ids[at] ?? ''
    if (!id.startsWith(prefix)) break
    if (at - first >= look) return { items, next: ids[at - 1] ?? '' }
    const schedule = state.schedules.get(id)?.schedule
    if (schedule === undefined || !matchesSchedule(schedule, query)) continue
    if (items.length === query.limit) return { items, next: items.at(-1)?.id ?? '' }
    items.push(Object.freeze(schedule))
  }
  return { items }
}

function sortedIds(state: MemoryState): readonly string[] {
  state.sortedIds ??= [...state.schedules.keys()].sort()
  return state.sortedIds
}

/** Where a page begins: after the cursor, or at the first id with the prefix. */
function firstIndex(ids: readonly string[], after: string | undefined, prefix: string): number {
  let [low, high] = [0, ids.length]
  const isBefore = (id: string) => (after !== undefined && id <= after) || id < prefix
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBefore(ids[middle] ?? '')) low = middle + 1
    else high = middle
  }
  return low
}
