import {
  decidePause,
  decidePut,
  decideRemove,
  decideResume,
  type TakeBack,
  type UnclaimedTick,
} from '../../core/declare.js'
import { checkPageLimit } from '../../core/page-limit.js'
import type { SkipRange } from '../../core/plan.js'
import { type Schedule, scheduleState } from '../../core/schedule.js'
import type { Page, PutResult, RemoveResult, ScheduleQuery, ScheduleWrite } from '../../core/store.js'
import { handOn } from './names.js'
import { addSkip, endRun } from './run-endings.js'
import { forgetSchedule, takeBackTicks, unclaimedTicks, writeSchedule } from './schedule-changes.js'
import { laneOf, type MemoryState, type ScheduleRecord } from './state.js'

/** The state that a later write of the batch would find, before the batch is written. */
interface Staged {
  readonly schedule: Schedule | undefined
  readonly unclaimed: readonly UnclaimedTick[]
}

type Decided = { readonly result: PutResult; readonly takeBack?: TakeBack }

/** Decides on all writes before the first, because a write that throws must leave nothing behind. */
export function putSchedules(state: MemoryState, writes: readonly ScheduleWrite[]): PutResult[] {
  const now = state.clock.now()
  const staged = new Map<string, Staged>()
  let version = state.lastVersion
  const decided = writes.map((write): Decided => {
    const before = staged.get(write.id) ?? stage(state, write.id)
    const decision = decideWrite(write, before, version + 1, now)
    if (decision.takeBack === undefined) return decision
    version += 1
    const taken = new Set([...decision.takeBack.remove, ...decision.takeBack.skip])
    const unclaimed = before.unclaimed.filter(({ run }) => !taken.has(run))
    staged.set(write.id, { schedule: decision.result.schedule, unclaimed })
    return decision
  })
  const results = decided.map((decision) => write(state, decision, now))
  handOn(state, now)
  return results
}

function stage(state: MemoryState, id: string): Staged {
  return { schedule: state.schedules.get(id)?.schedule, unclaimed: unclaimedTicks(state.lanes.get(id)) }
}

function decideWrite(
  { id, definition, ifVersion }: ScheduleWrite,
  before: Staged,
  version: number,
  now: number,
): Decided {
  const { schedule, unclaimed } = before
  if (ifVersion !== undefined && ifVersion !== (schedule?.version ?? 0)) {
    return { result: { outcome: 'conflict', schedule } }
  }
  const decision = decidePut(id, definition, schedule, unclaimed, version, now)
  if (decision.outcome === 'unchanged') return { result: decision }
  return { result: { outcome: decision.outcome, schedule: decision.schedule }, takeBack: decision.takeBack }
}

function write(state: MemoryState, { result, takeBack }: Decided, now: number): PutResult {
  if (takeBack === undefined || result.outcome === 'conflict') {
    Object.freeze(result.schedule)
    return result
  }
  takeBackTicks(state, laneOf(state, result.schedule.id), takeBack, now)
  state.lastVersion = result.schedule.version
  return { outcome: result.outcome, schedule: writeSchedule(state, result.schedule) }
}

export function removeSchedules(state: MemoryState, ids: readonly string[], ifVersion?: number): RemoveResult[] {
  const now = state.clock.now()
  const results = ids.map((id): RemoveResult => {
    const record = state.schedules.get(id)
    if (record === undefined) return 'missing'
    if (ifVersion !== undefined && ifVersion !== record.schedule.version) return 'conflict'
    removeSchedule(state, record, now)
    return 'removed'
  })
  handOn(state, now)
  return results
}

export function applySchedules(
  state: MemoryState,
  writes: readonly ScheduleWrite[],
  removals: readonly string[],
): PutResult[] {
  const results = putSchedules(state, writes)
  removeSchedules(state, removals)
  return results
}

/** Running runs, and runs that were triggered by hand, are not affected. */
function removeSchedule(state: MemoryState, record: ScheduleRecord, now: number): void {
  const { lane, schedule } = record
  takeBackTicks(state, lane, decideRemove(schedule, unclaimedTicks(lane), now), now)
  for (const run of [...lane.engaged]) {
    if (run.origin === 'tick' && run.attempt > 0 && run.state !== 'running') endRun(state, run, 'cancelled', now)
  }
  forgetSchedule(state, record)
}

export function pauseSchedule(state: MemoryState, id: string, note: string | undefined): Schedule | undefined {
  const record = state.schedules.get(id)
  if (record === undefined) return undefined
  const before = record.schedule
  if (before.pausedAt !== undefined && before.pauseNote === note) return getSchedule(state, id)
  const now = state.clock.now()
  state.lastVersion += 1
  const { schedule, takeBack } = decidePause(before, unclaimedTicks(record.lane), state.lastVersion, now, note)
  takeBackTicks(state, record.lane, takeBack, now)
  const paused = writeSchedule(state, schedule)
  handOn(state, now)
  return paused
}

export function resumeSchedule(state: MemoryState, id: string): Schedule | undefined {
  const record = state.schedules.get(id)
  if (record === undefined || record.schedule.pausedAt === undefined) return getSchedule(state, id)
  const now = state.clock.now()
  state.lastVersion += 1
  const { schedule, skips } = decideResume(record.schedule, state.lastVersion, now)
  for (const range of skips) addSkip(state, record.lane, range, now)
  return writeSchedule(state, schedule)
}

/** Schedules are frozen when they are returned: they are never changed, only replaced. */
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
    if (schedule === undefined || !matches(schedule, query)) continue
    if (items.length === query.limit) return { items, next: items.at(-1)?.id ?? '' }
    items.push(Object.freeze(schedule))
  }
  return { items }
}

export function skippedRanges(state: MemoryState, id: string, from: number, to: number, limit: number): SkipRange[] {
  const ranges = [...(state.lanes.get(id)?.skips ?? [])].map(({ range }) => range)
  return ranges
    .filter((range) => range.from <= to && range.to >= from)
    .sort((one, other) => one.from - other.from)
    .slice(0, limit)
}

function sortedIds(state: MemoryState): readonly string[] {
  state.sortedIds ??= [...state.schedules.keys()].sort()
  return state.sortedIds
}

/** The start of a page: after the last id of the previous one, or at the first id with the prefix. */
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

function matches(schedule: Schedule, { state, job, sink, app }: ScheduleQuery): boolean {
  const { target, app: owner } = schedule.definition
  return (
    (state === undefined || state === scheduleState(schedule)) &&
    (job === undefined || ('job' in target && target.job === job)) &&
    (sink === undefined || ('sink' in target && target.sink === sink)) &&
    (app === undefined || app === owner)
  )
}
