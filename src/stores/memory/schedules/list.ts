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
  const { prefix = '', after, look = Number.POSITIVE_INFINITY } = query
  const items: Schedule[] = []
  let [looked, last] = [0, '']
  for (const id of candidates(state, query)) {
    if (id === after) continue
    if (!id.startsWith(prefix)) break
    if (looked === look) return { items, next: last }
    ;[looked, last] = [looked + 1, id]
    const schedule = state.schedules.get(id)?.schedule
    if (schedule === undefined || !matchesSchedule(schedule, query)) continue
    if (items.length === query.limit) return { items, next: items.at(-1)?.id ?? '' }
    items.push(Object.freeze(schedule))
  }
  return { items }
}

/** In order, from the cursor on, or from the first id with the prefix. */
function candidates(state: MemoryState, { unstamped, after = '', prefix = '' }: ScheduleQuery): Iterable<string> {
  const first = after > prefix ? after : prefix
  return unstamped ? [...state.unstamped].filter((id) => id >= first).sort() : state.sortedIds.from(first)
}
