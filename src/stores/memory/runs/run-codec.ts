import type { ErrorRecord } from '../../../core/errors.js'
import type { Mutable } from '../../../core/mutable.js'
import type { SkipReason } from '../../../core/policies.js'
import type { RunKey } from '../../../core/runs/key.js'
import type { Keep, Origin, Run, RunState, Target, WaitsFor } from '../../../core/runs/run.js'
import { fromText } from '../../../core/runs/stored-text.js'
import type { SkippedRun } from '../../../core/store.js'
import type { InstanceRecord, Lane, LeaseRecord, TargetQueue } from '../schema/state.js'

/** The fields that a run is created with. */
export interface RunFields {
  readonly target: Target
  readonly origin: Origin
  readonly lane?: Lane | undefined
  readonly tick?: number | undefined
  readonly backfill?: string | undefined
  /** JSON, as in every other store, so that no object is shared with a caller. */
  readonly payload: string
  readonly priority: number
  readonly keep: Keep
  readonly key?: RunKey | 'unstamped' | undefined
  readonly dedupe?: string | undefined
  readonly dedupeForMs?: number
  readonly createdAt: number
  readyAt: number
  startBy?: number | undefined
  readonly byDeadline?: true | undefined
  readonly queue: TargetQueue
}

/** A run as the store holds it. Its places in queues are known to the queues. */
export interface RunRecord extends Omit<RunFields, 'key'> {
  readonly id: string
  /** Grows from run to run: the oldest has the smallest. */
  readonly order: number
  key: RunKey | undefined
  unstamped: boolean

  state: RunState
  waitsFor?: WaitsFor | undefined
  reason?: SkipReason | undefined
  attempt: number
  failures: number
  takeovers: number
  token?: number | undefined
  startedAt?: number | undefined
  finishedAt?: number | undefined
  cancelRequested: boolean
  result?: string | undefined
  error?: ErrorRecord | undefined

  /** The instance that claimed it last. */
  instance?: string | undefined
  /** The instance that runs it now. */
  owner?: InstanceRecord | undefined
  /** The number of the claim that started it. */
  claim: number
  /** Its instance died while it ran: the next claim counts as a takeover. */
  orphaned: boolean
  /** The token of the last settlement: the same one again answers `settled`. */
  settledToken?: number | undefined
  lease?: LeaseRecord | undefined
}

/** Every field is named here, in one literal: V8 then keeps all records in one shape. With fields that come later, they are slow. */
export function runRecord(id: string, order: number, fields: RunFields): RunRecord {
  const { key } = fields
  return {
    id,
    order,
    target: fields.target,
    origin: fields.origin,
    lane: fields.lane,
    tick: fields.tick,
    backfill: fields.backfill,
    payload: fields.payload,
    priority: fields.priority,
    keep: fields.keep,
    key: key === 'unstamped' ? undefined : key,
    unstamped: key === 'unstamped',
    dedupe: fields.dedupe,
    dedupeForMs: fields.dedupeForMs ?? 0,
    createdAt: fields.createdAt,
    readyAt: fields.readyAt,
    startBy: fields.startBy,
    byDeadline: fields.byDeadline,
    queue: fields.queue,
    state: 'ready',
    waitsFor: undefined,
    reason: undefined,
    attempt: 0,
    failures: 0,
    takeovers: 0,
    token: undefined,
    startedAt: undefined,
    finishedAt: undefined,
    cancelRequested: false,
    result: undefined,
    error: undefined,
    instance: undefined,
    owner: undefined,
    claim: 0,
    orphaned: false,
    settledToken: undefined,
    lease: undefined,
  }
}

/** A copy for callers. */
export function toRun(record: RunRecord): Run {
  const run: Mutable<Run> = {
    id: record.id,
    target: record.target,
    origin: record.origin,
    payload: fromText(record.payload),
    priority: record.priority,
    keep: record.keep,
    state: record.state,
    createdAt: record.createdAt,
    readyAt: record.readyAt,
    attempt: record.attempt,
    failures: record.failures,
    takeovers: record.takeovers,
  }
  if (record.lane !== undefined) run.schedule = record.lane.id
  if (record.tick !== undefined) run.tick = record.tick
  if (record.backfill !== undefined) run.backfill = record.backfill
  if (record.key !== undefined) run.key = record.key
  if (record.dedupe !== undefined) run.dedupe = record.dedupe
  if (record.waitsFor !== undefined) run.waitsFor = record.waitsFor
  if (record.reason !== undefined) run.reason = record.reason
  if (record.startBy !== undefined) run.startBy = record.startBy
  if (record.token !== undefined) run.token = record.token
  if (record.instance !== undefined) run.instance = record.instance
  if (record.startedAt !== undefined) run.startedAt = record.startedAt
  if (record.finishedAt !== undefined) run.finishedAt = record.finishedAt
  if (record.cancelRequested) run.cancelRequested = true
  if (record.result !== undefined) run.result = fromText(record.result)
  if (record.error !== undefined) run.error = record.error
  return run
}

export function toSkipped({ id, target, origin, lane, tick }: RunRecord, reason: SkipReason): SkippedRun {
  return {
    ...{ id, target: 'job' in target ? target : { sink: target.sink }, origin, reason },
    ...(lane === undefined ? {} : { schedule: lane.id }),
    ...(tick === undefined ? {} : { tick }),
  }
}

/** A frozen copy that shares nothing with its input. */
export function frozenCopy<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopy)) as Value
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  const copy = Object.fromEntries(members.map(([field, member]) => [field, frozenCopy(member)]))
  return Object.freeze(copy) as Value
}
