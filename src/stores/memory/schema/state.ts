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
import { RunLog } from './run-log.js'
import { SortedTexts } from './sorted-texts.js'

export interface ScheduleRecord {
  schedule: Schedule
  /** The payload's text, shared by all its runs. */
  payload: string
  readonly lane: Lane
  /** Orders schedules that are due at the same instant: the one planned last comes last. */
  queued: number
}

/** The runs and skips of one schedule id. It outlives the schedule, for as long as there is history. */
export interface Lane {
  readonly id: string
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
export type RunLine = Heap<RunRecord>

/** Runs of one job or sink that can be claimed now, in the order of claiming, or later. */
export interface TargetQueue {
  readonly ready: Heap<RunRecord>
  readonly delayed: Heap<RunRecord>
}

/** A lock name or a run's key that is in use: its holders and its waiters. */
export interface NameRecord {
  readonly name: string
  lastToken: number
  readonly holders: Map<string, LeaseRecord>
  /** Locks that wait, oldest first. */
  readonly waiters: Map<string, Waiter>
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
}

/** The records of one kind. */
export interface Shelf {
  readonly byId: Map<string, StoredRecord>
  readonly ids: SortedTexts
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
  readonly sortedIds: SortedTexts
  readonly due: Heap<ScheduleRecord>
  readonly unstamped: Set<string>
  /** Finished schedules that are removed with their history. This set and those below have the oldest entry first. */
  readonly finished: Set<ScheduleRecord>
  readonly lanes: Map<string, Lane>
  readonly skips: Set<SkipRecord>

  readonly runs: Map<string, RunRecord>
  readonly runLog: RunLog
  readonly ended: Set<RunRecord>
  /** How many runs have not ended, by their owner. */
  readonly openRuns: Map<string, number>
  readonly openOwners: SortedTexts
  readonly queues: Map<string, TargetQueue>
  readonly stampless: Set<RunRecord>
  readonly dedupes: Map<string, Dedupe>
  readonly tombstones: Heap<Dedupe>

  readonly names: Map<string, NameRecord>
  /** Names that have holders. */
  readonly heldNames: SortedTexts
  /** The last tokens of names that are not in use. A token outlives every holder. */
  readonly lastTokens: Map<string, { readonly token: number; readonly freedAt: number }>
  readonly locks: Heap<LeaseRecord>
  /** Names that have waiters. */
  readonly blocked: Set<NameRecord>
  /** Waiting runs that are not due yet. They count against their key only from then on. */
  readonly early: Heap<RunRecord>

  readonly instances: Map<string, InstanceRecord>
  readonly jobs: Map<string, JobInfo>
  readonly declared: Map<string, Map<string, DeclaredSet>>
  /** By kind. */
  readonly records: Map<string, Shelf>

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
    sortedIds: new SortedTexts(),
    due: new Heap(dueBefore),
    unstamped: new Set(),
    finished: new Set(),
    lanes: new Map(),
    skips: new Set(),
    runs: new Map(),
    runLog: new RunLog(),
    ended: new Set(),
    openRuns: new Map(),
    openOwners: new SortedTexts(),
    queues: new Map(),
    stampless: new Set(),
    dedupes: new Map(),
    tombstones: new Heap((one, other) => one.until < other.until),
    names: new Map(),
    heldNames: new SortedTexts(),
    lastTokens: new Map(),
    locks: new Heap((one, other) => one.expiresAt < other.expiresAt),
    blocked: new Set(),
    early: new Heap(readyBefore),
    instances: new Map(),
    jobs: new Map(),
    declared: new Map(),
    records: new Map(),
    freedNames: new Set(),
    freedLanes: new Set(),
    wakes: new Set(),
  }
}

export function laneOf({ lanes }: MemoryState, id: string): Lane {
  const lane = lanes.get(id) ?? { id, runs: new Map(), engaged: new Set(), waiting: runLine(), skips: new Set() }
  lanes.set(id, lane)
  return lane
}

/** Removes a lane that is empty. */
export function tidyLane({ lanes, schedules }: MemoryState, { id, runs, skips }: Lane): void {
  if (!schedules.has(id) && runs.size === 0 && skips.size === 0) lanes.delete(id)
}

export function nameOf({ names, lastTokens }: MemoryState, name: string): NameRecord {
  const known = names.get(name)
  if (known !== undefined) return known
  const record: NameRecord = {
    ...{ name, lastToken: lastTokens.get(name)?.token ?? 0, holders: new Map(), waiters: new Map() },
    ...{ standing: runLine(), waiting: runLine(), engaged: new Set(), delayed: new Map() },
  }
  lastTokens.delete(name)
  names.set(name, record)
  return record
}

/** Of a name without holders and waiters only the last token is kept, for a while. */
export function tidyName({ names, lastTokens, blocked, now }: MemoryState, record: NameRecord): void {
  const { name, lastToken, holders, waiters, waiting, engaged, delayed } = record
  if (waiters.size === 0 && waiting.size === 0) blocked.delete(record)
  if ([holders, waiters, waiting, engaged, delayed].some(({ size }) => size > 0)) return
  if (names.delete(name) && lastToken > 0) lastTokens.set(name, { token: lastToken, freedAt: now })
}

export function queueOf({ queues }: MemoryState, target: string): TargetQueue {
  const queue = queues.get(target) ?? { ready: new Heap(claimBefore), delayed: new Heap(readyBefore) }
  queues.set(target, queue)
  return queue
}

function runLine(): RunLine {
  return new Heap((one, other) => one.order < other.order)
}

function dueBefore(one: ScheduleRecord, other: ScheduleRecord): boolean {
  const [due, otherDue] = [one.schedule.dueAt ?? 0, other.schedule.dueAt ?? 0]
  return due === otherDue ? one.queued < other.queued : due < otherDue
}

/** Highest priority, then the oldest ready instant, then the oldest run. */
export function claimBefore(one: RunRecord, other: RunRecord): boolean {
  if (one.priority !== other.priority) return one.priority > other.priority
  return readyBefore(one, other)
}

function readyBefore(one: RunRecord, other: RunRecord): boolean {
  return one.readyAt === other.readyAt ? one.order < other.order : one.readyAt < other.readyAt
}
