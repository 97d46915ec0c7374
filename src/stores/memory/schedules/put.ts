import { isSoon } from '../../../core/connection/hint.js'
import { toText } from '../../../core/runs/stored-text.js'
import { decidePut, type TakeBack, type UnclaimedTick } from '../../../core/schedules/declare.js'
import { nextVersion } from '../../../core/schedules/next-version.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import { frozenCopy } from '../runs/run-codec.js'
import { laneOf, type MemoryState, type ScheduleRecord } from '../schema/state.js'
import { takeBackTicks, unclaimedTicks } from './take-back.js'

/** The state that a write of a batch finds, after the writes before it. */
interface Staged {
  readonly schedule: Schedule | undefined
  readonly unclaimed: readonly UnclaimedTick[]
}

type Decided = { readonly result: PutResult; readonly takeBack?: TakeBack }

/** Decides on all writes before the first is carried out, because an error must leave nothing behind. */
export function putSchedules(state: MemoryState, writes: readonly ScheduleWrite[]): PutResult[] {
  const staged = new Map<string, Staged>()
  let version = state.lastVersion
  const decided = writes.map((write): Decided => {
    const before = staged.get(write.id) ?? stage(state, write.id)
    const next = nextVersion(version, state.now)
    const decision = decide(write, before, next, state.now)
    if (decision.takeBack === undefined) return decision
    version = next
    const taken = new Set([...decision.takeBack.remove, ...decision.takeBack.skip])
    const unclaimed = before.unclaimed.filter(({ run }) => !taken.has(run))
    staged.set(write.id, { schedule: decision.result.schedule, unclaimed })
    return decision
  })
  return decided.map((decision) => write(state, decision))
}

function stage(state: MemoryState, id: string): Staged {
  return { schedule: state.schedules.get(id)?.schedule, unclaimed: unclaimedTicks(state.lanes.get(id)) }
}

function decide({ id, definition, ifVersion }: ScheduleWrite, before: Staged, version: number, now: number): Decided {
  const { schedule, unclaimed } = before
  if (ifVersion !== undefined && ifVersion !== (schedule?.version ?? 0)) {
    return { result: { outcome: 'conflict', schedule } }
  }
  const decision = decidePut(id, definition, schedule, unclaimed, version, now)
  if (decision.outcome === 'unchanged') return { result: decision }
  return { result: { outcome: decision.outcome, schedule: decision.schedule }, takeBack: decision.takeBack }
}

function write(state: MemoryState, { result, takeBack }: Decided): PutResult {
  if (takeBack === undefined || result.outcome === 'conflict') {
    Object.freeze(result.schedule)
    return result
  }
  takeBackTicks(state, laneOf(state, result.schedule.id), takeBack)
  state.lastVersion = result.schedule.version
  return { outcome: result.outcome, schedule: writeSchedule(state, result.schedule) }
}

/** Writes a schedule, new or changed. An unchanged definition is not copied again. */
export function writeSchedule(state: MemoryState, schedule: Schedule): Schedule {
  const known = state.schedules.get(schedule.id)
  const definition =
    known?.schedule.definition === schedule.definition ? schedule.definition : frozenCopy(schedule.definition)
  const written = Object.freeze({ ...schedule, definition })
  const record = known ?? addSchedule(state, written)
  record.payload = toText(definition.payload)
  moveSchedule(state, record, written)
  return written
}

function addSchedule(state: MemoryState, schedule: Schedule): ScheduleRecord {
  const lane = laneOf(state, schedule.id)
  const record: ScheduleRecord = { schedule, payload: '', lane, queued: 0 }
  state.schedules.set(schedule.id, record)
  state.sortedIds.add(schedule.id)
  return record
}

/** Replaces a schedule, and moves it to the indexes that its new state belongs to. */
export function moveSchedule(state: MemoryState, record: ScheduleRecord, schedule: Schedule): void {
  state.due.remove(record)
  record.schedule = schedule
  const { id, definition, dueAt, finishedAt } = schedule
  if (dueAt !== undefined) {
    state.lastQueued += 1
    record.queued = state.lastQueued
    state.due.push(record)
    if (isSoon(dueAt, state.now)) state.wakes.add('schedules')
  }
  if (definition.key === 'unstamped') state.unstamped.add(id)
  else state.unstamped.delete(id)
  // A schedule that code declares is removed when the code no longer declares it, not when it has finished.
  const goes = finishedAt !== undefined && definition.onFinish === 'remove' && definition.app === undefined
  if (goes) state.finished.add(record)
  else state.finished.delete(record)
}
