/** The changes of a schedule, each with all the indexes that it changes. */
import type { TakeBack, UnclaimedTick } from '../../core/declare.js'
import { isSoon } from '../../core/hint.js'
import type { Schedule } from '../../core/schedule.js'
import { toText } from '../../core/stored-text.js'
import { NOWHERE } from './heap.js'
import { addSkip, skipRun, unrecordRun } from './run-endings.js'
import { frozenCopy, type RunRecord } from './run-record.js'
import { type Lane, laneOf, type MemoryState, type ScheduleRecord, tidyLane } from './state.js'

/** Writes a new or changed schedule. Parts shared with the last version are not copied again. */
export function writeSchedule(state: MemoryState, schedule: Schedule): Schedule {
  const known = state.schedules.get(schedule.id)
  const definition =
    known?.schedule.definition === schedule.definition ? schedule.definition : frozenCopy(schedule.definition)
  const written = Object.freeze({ ...schedule, definition })
  const record = known ?? addSchedule(state, written)
  if (record.place !== NOWHERE) state.due.remove(record)
  record.schedule = written
  record.payload = toText(definition.payload)
  index(state, record)
  return written
}

/** Writes a schedule's cursor and state; its definition is unchanged. */
export function moveSchedule(state: MemoryState, record: ScheduleRecord, schedule: Schedule): void {
  record.schedule = schedule
  index(state, record)
}

export function forgetSchedule(state: MemoryState, record: ScheduleRecord): void {
  const { schedule, lane } = record
  if (record.place !== NOWHERE) state.due.remove(record)
  if (record.finished !== undefined) state.finished.remove(record.finished)
  record.finished = undefined
  state.unstamped.delete(schedule.id)
  state.schedules.delete(schedule.id)
  state.sortedIds = undefined
  lane.record = undefined
  tidyLane(state, lane)
}

/** The schedule's recorded ticks that were never claimed. */
export function unclaimedTicks(lane: Lane | undefined): UnclaimedTick[] {
  return unclaimedRuns(lane).map(({ id, tick }) => ({ run: id, tick: tick ?? 0 }))
}

export function unclaimedRuns(lane: Lane | undefined): RunRecord[] {
  if (lane === undefined || lane.engaged.size === 0) return []
  return [...lane.engaged].filter((run) => run.origin === 'tick' && run.attempt === 0)
}

export function takeBackTicks(state: MemoryState, lane: Lane, takeBack: TakeBack, now: number): void {
  const { remove, skip, reason, unrecorded } = takeBack
  for (const range of unrecorded) addSkip(state, lane, range, now)
  for (const id of remove) {
    const run = state.runs.get(id)
    if (run !== undefined) unrecordRun(state, run)
  }
  for (const id of skip) {
    const run = state.runs.get(id)
    if (run !== undefined) skipRun(state, run, reason, now)
  }
}

function addSchedule(state: MemoryState, schedule: Schedule): ScheduleRecord {
  const lane = laneOf(state, schedule.id)
  const record: ScheduleRecord = {
    schedule,
    payload: '',
    lane,
    place: NOWHERE,
    dueAt: 0,
    queued: 0,
    finished: undefined,
  }
  lane.record = record
  state.schedules.set(schedule.id, record)
  state.sortedIds = undefined
  return record
}

function index(state: MemoryState, record: ScheduleRecord): void {
  const { id, definition, dueAt, finishedAt } = record.schedule
  if (dueAt !== undefined) {
    state.lastQueued += 1
    record.queued = state.lastQueued
    record.dueAt = dueAt
    state.due.push(record)
    if (isSoon(dueAt, state.clock.now())) state.wakes.add('schedules')
  }
  if (definition.key === 'unstamped') state.unstamped.add(id)
  else state.unstamped.delete(id)
  const goes = finishedAt !== undefined && definition.onFinish === 'remove' && definition.app === undefined
  if (goes && record.finished === undefined) record.finished = state.finished.append(record)
  else if (!goes && record.finished !== undefined) {
    state.finished.remove(record.finished)
    record.finished = undefined
  }
}
