/**
 * Everything that the memory store holds: plain records, and an index for each question that operations ask often. The records
 * are the store's own: what leaves it is a copy, or frozen.
 */
import type { Clock } from '../../../core/clock.js'
import type { Hint } from '../../../core/connection/hint.js'
import type { InstanceInfo, JobInfo } from '../../../core/instances/instance.js'
import type { StoredRecord } from '../../../core/records/record.js'
import type { SkipRange } from '../../../core/schedules/plan.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { DeclaredSet, Frozen } from '../../../core/store.js'
import type { RunRecord } from '../runs/run-codec.js'
import { Heap } from './heap.js'
import { type Link, List } from './list.js'

export interface ScheduleRecord {
  schedule: Schedule
  /** The payload's text, shared by all its runs. */
  payload: string
  readonly lane: Lane
  place: number
  /** A copy of the schedule's `dueAt`, by which `due` is ordered. */
  dueAt: number
  /** Orders schedules that are due at the same instant: the one planned last comes last. */
  queued: number
  finished: Link<ScheduleRecord> | undefined
}

/** The runs and skips of one schedule id. It outlives the schedule, for as long as there is history. */
export interface Lane {
  readonly id: string
  record: ScheduleRecord | undefined
  /** By what must be unique: ticks by their instant, backfills by instant and name, triggers by their id. */
  readonly runs: Map<number | string, RunRecord>
  /** Unfinished runs that are due or began, and ticks recorded ahead. */
  readonly engaged: Set<RunRecord>
  /** The runs of `engaged` that wait for the others. */
  readonly waiting: RunLine
  readonly skips: Set<SkipRecord>
}

export interface SkipRecord {
  readonly range: SkipRange
  readonly lane: Lane
  readonly recordedAt: number
}

/** Oldest run first. */
export type RunLine = Heap<'linePlace', RunRecord>

/** Runs of one job or sink that can be claimed now, in the order of claiming, or later. */
export interface TargetQueue {
  readonly ready: Heap<'claimPlace', RunRecord>
  readonly delayed: Heap<'claimPlace', RunRecord>
}

/** A lock name or a run's key: its holders and its waiters. The last token outlives every holder. */
export interface NameRecord {
  readonly name: string
  lastToken: number
  readonly holders: Map<string, LeaseRecord>
  /** Locks that wait, oldest first. */
  readonly waiters: Map<string, Waiter>
  line: KeyLine | undefined
  freed: Link<NameRecord> | undefined
  freedAt: number
}

export interface KeyLine {
  /** Due runs that are ready, and runs that wait for the key. */
  readonly standing: RunLine
  readonly waiting: RunLine
  /** Runs that are due or began, and have not ended: what an enqueue is checked against. */
  readonly engaged: Set<RunRecord>
  /** Runs that are not due yet, by the instant at which they become ready. */
  readonly delayed: Map<number, Set<RunRecord>>
}

export interface LeaseRecord {
  readonly name: NameRecord
  readonly holder: string
  readonly token: number
  readonly acquiredAt: number
  /** For locks only: the key of a run expires with its instance. */
  expiresAt: number
  readonly instance: string | undefined
  readonly run: RunRecord | undefined
  readonly owner: InstanceRecord | undefined
  released: boolean
  place: number
}

export interface Waiter {
  readonly holder: string
  readonly ttlMs: number
  readonly permits: number
  readonly instance: string | undefined
  readonly floor: number
  /** When the waiter loses its place in the queue, unless it asks again. */
  readonly until: number
}

export interface InstanceRecord {
  readonly info: InstanceInfo
  readonly joinedAt: number
  beatAt: number
  expiresAt: number
  dead: boolean
  readonly running: Set<RunRecord>
  /** Claims up to this number were answered, or have failed. */
  claimsSettled: number
}

/** A dedupe key that refuses further runs: of an unfinished run, or for a while after its end. */
export interface Dedupe {
  readonly id: string
  readonly run: string
  until: number
  place: number
}

export interface MemoryState {
  readonly clock: Clock
  /** The store's time for the whole of the current operation. */
  now: number
  frozen: Frozen | undefined
  lastVersion: number
  lastRun: number
  lastQueued: number

  readonly schedules: Map<string, ScheduleRecord>
  /** All ids in order; undefined after a change, until a list needs them again. */
  sortedIds: readonly string[] | undefined
  readonly due: Heap<'place', ScheduleRecord>
  readonly unstamped: Set<string>
  /** Finished schedules that are removed with their history. */
  readonly finished: List<ScheduleRecord>
  readonly lanes: Map<string, Lane>
  readonly skips: List<SkipRecord>

  readonly runs: Map<string, RunRecord>
  readonly created: List<RunRecord>
  readonly ended: List<RunRecord>
  /** How many runs have not ended, by their owner. */
  readonly openRuns: Map<string, number>
  readonly queues: Map<string, TargetQueue>
  readonly stampless: Set<RunRecord>
  readonly dedupes: Map<string, Dedupe>
  readonly tombstones: Heap<'place', Dedupe>

  readonly names: Map<string, NameRecord>
  /** Names without holders and waiters, kept for their last token. */
  readonly unusedNames: List<NameRecord>
  readonly locks: Heap<'place', LeaseRecord>
  /** Names that have waiters. */
  readonly blocked: Set<NameRecord>
  /** Waiting runs that are not due yet. They count against their key only from then on. */
  readonly early: Heap<'claimPlace', RunRecord>

  readonly instances: Map<string, InstanceRecord>
  readonly jobs: Map<string, JobInfo>
  readonly declared: Map<string, Map<string, DeclaredSet>>
  /** By kind, then by id. */
  readonly records: Map<string, Map<string, StoredRecord>>

  /** What the current operation has freed: `locks/pass-on.ts` serves the waiters at its end. */
  readonly freedNames: Set<NameRecord>
  readonly freedLanes: Set<Lane>
  readonly wakes: Set<Hint>
}

export function emptyState(clock: Clock): MemoryState {
  return {
    clock,
    now: clock.now(),
    frozen: undefined,
    lastVersion: 0,
    lastRun: 0,
    lastQueued: 0,
    schedules: new Map(),
    sortedIds: undefined,
    due: new Heap('place', dueBefore),
    unstamped: new Set(),
    finished: new List(),
    lanes: new Map(),
    skips: new List(),
    runs: new Map(),
    created: new List(),
    ended: new List(),
    openRuns: new Map(),
    queues: new Map(),
    stampless: new Set(),
    dedupes: new Map(),
    tombstones: new Heap('place', (one, other) => one.until < other.until),
    names: new Map(),
    unusedNames: new List(),
    locks: new Heap('place', (one, other) => one.expiresAt < other.expiresAt),
    blocked: new Set(),
    early: new Heap('claimPlace', readyBefore),
    instances: new Map(),
    jobs: new Map(),
    declared: new Map(),
    records: new Map(),
    freedNames: new Set(),
    freedLanes: new Set(),
    wakes: new Set(),
  }
}

export function laneOf(state: MemoryState, id: string): Lane {
  const known = state.lanes.get(id)
  if (known !== undefined) return known
  const lane: Lane = {
    id,
    record: undefined,
    runs: new Map(),
    engaged: new Set(),
    waiting: runLine(),
    skips: new Set(),
  }
  state.lanes.set(id, lane)
  return lane
}

/** Removes a lane that is empty. */
export function tidyLane(state: MemoryState, lane: Lane): void {
  if (lane.record === undefined && lane.runs.size === 0 && lane.skips.size === 0) state.lanes.delete(lane.id)
}

export function nameOf(state: MemoryState, name: string): NameRecord {
  const known = state.names.get(name)
  if (known !== undefined) return known
  const record: NameRecord = {
    name,
    lastToken: 0,
    holders: new Map(),
    waiters: new Map(),
    line: undefined,
    freed: undefined,
    freedAt: 0,
  }
  state.names.set(name, record)
  return record
}

export function keyLine(name: NameRecord): KeyLine {
  name.line ??= { standing: runLine(), waiting: runLine(), engaged: new Set(), delayed: new Map() }
  return name.line
}

export function queueOf(state: MemoryState, target: string): TargetQueue {
  const known = state.queues.get(target)
  if (known !== undefined) return known
  const queue: TargetQueue = {
    ready: new Heap('claimPlace', claimBefore),
    delayed: new Heap('claimPlace', readyBefore),
  }
  state.queues.set(target, queue)
  return queue
}

function runLine(): RunLine {
  return new Heap('linePlace', (one, other) => one.order < other.order)
}

function dueBefore(one: ScheduleRecord, other: ScheduleRecord): boolean {
  return one.dueAt === other.dueAt ? one.queued < other.queued : one.dueAt < other.dueAt
}

/** Highest priority, then the oldest ready instant, then the oldest run. */
export function claimBefore(one: RunRecord, other: RunRecord): boolean {
  if (one.priority !== other.priority) return one.priority > other.priority
  return readyBefore(one, other)
}

function readyBefore(one: RunRecord, other: RunRecord): boolean {
  return one.readyAt === other.readyAt ? one.order < other.order : one.readyAt < other.readyAt
}
