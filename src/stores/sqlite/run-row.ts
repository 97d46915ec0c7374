/** Runs as rows: their columns, how a row is read, and the statements that write one. */
import type { ErrorRecord } from '../../core/errors.js'
import type { Json } from '../../core/json.js'
import type { RunKey } from '../../core/key.js'
import type { SkipReason } from '../../core/policies.js'
import type { Keep, Origin, Run, RunState, Target, WaitsFor } from '../../core/run.js'
import type { Value } from './driver.js'
import type { Tx } from './tx.js'

const STATES: readonly RunState[] = ['waiting', 'ready', 'running', 'succeeded', 'failed', 'cancelled', 'skipped']
const ORIGINS: readonly Origin[] = ['tick', 'trigger', 'backfill', 'enqueue']
const KEEPS: readonly Keep[] = ['all', 'failures', 'none']
const WAITS: readonly (WaitsFor | undefined)[] = [undefined, 'stamp', 'overlap', 'key']

export const stateNumber = (state: RunState): number => STATES.indexOf(state)
export const waitNumber = (waitsFor: WaitsFor | undefined): number => WAITS.indexOf(waitsFor)
export const originNumber = (origin: Origin): number => ORIGINS.indexOf(origin)
export const keepNumber = (keep: Keep): number => KEEPS.indexOf(keep)

/** A run as the store holds it: what others see of it, and what only the store knows. */
export interface RunRecord {
  readonly id: number
  readonly target: string
  readonly options: string | null
  readonly origin: Origin
  readonly schedule: string | null
  readonly tick: number | null
  readonly backfill: string | null
  readonly payload: string
  readonly priority: number
  readonly keep: Keep
  key: RunKey | undefined
  unstamped: boolean
  readonly dedupe: string | null
  readonly dedupeMs: number
  state: RunState
  waitsFor: WaitsFor | undefined
  engaged: boolean
  reason: SkipReason | undefined
  readonly createdAt: number
  readyAt: number
  startBy: number | null
  attempt: number
  failures: number
  takeovers: number
  token: number | null
  instance: string | null
  /** The number of the claim that started it. */
  claim: number
  /** Its instance died with it: the next claim is a takeover. */
  rescued: boolean
  /** Its handler's transaction has committed: however the attempt ends, the run has succeeded. */
  committed: boolean
  /** The token that settled last, so that settling twice is settling once. */
  settledToken: number | null
  startedAt: number | null
  finishedAt: number | null
  /** Its place among the runs that ended. */
  ended: number | null
  cancelRequested: boolean
  result: string | null
  error: string | null
}

const PLAIN = `id, target, options, origin, schedule, tick, backfill, payload, priority, keep, key, key_limit, key_waits,
  unstamped, dedupe, dedupe_ms, state, waits_for, engaged, reason, created_at, ready_at, start_by, attempt, failures,
  takeovers, token, instance, claim, rescued, committed, settled_token, started_at, finished_at, ended, cancel, result,
  error`
export const RUN_COLUMNS = PLAIN

type Text = string | null
type Instant = number | null
export type RunRow = readonly [
  ...[id: number, target: string, options: Text, origin: number, schedule: Text, tick: Instant, backfill: Text],
  ...[payload: string, priority: number, keep: number, key: Text, keyLimit: number, keyWaits: number],
  ...[unstamped: number, dedupe: Text, dedupeMs: Instant, state: number, waitsFor: number, engaged: number],
  ...[reason: Text, createdAt: number, readyAt: number, startBy: Instant, attempt: number, failures: number],
  ...[takeovers: number, token: Instant, instance: Text, claim: number, rescued: number, committed: number],
  ...[settledToken: Instant, startedAt: Instant, finishedAt: Instant, ended: Instant, cancel: number, result: Text],
  error: Text,
]

export function runRecord(row: RunRow): RunRecord {
  const key = row[10]
  return {
    id: row[0],
    target: row[1],
    options: row[2],
    origin: ORIGINS[row[3]] ?? 'enqueue',
    schedule: row[4],
    tick: row[5],
    backfill: row[6],
    payload: row[7],
    priority: row[8],
    keep: KEEPS[row[9]] ?? 'all',
    key: key === null ? undefined : { name: key, limit: row[11], whenBusy: row[12] === 1 ? 'wait' : 'skip' },
    unstamped: row[13] === 1,
    dedupe: row[14],
    dedupeMs: row[15] ?? 0,
    state: STATES[row[16]] ?? 'failed',
    waitsFor: WAITS[row[17]],
    engaged: row[18] === 1,
    reason: (row[19] as SkipReason | null) ?? undefined,
    createdAt: row[20],
    readyAt: row[21],
    startBy: row[22],
    attempt: row[23],
    failures: row[24],
    takeovers: row[25],
    token: row[26],
    instance: row[27],
    claim: row[28],
    rescued: row[29] === 1,
    committed: row[30] === 1,
    settledToken: row[31],
    startedAt: row[32],
    finishedAt: row[33],
    ended: row[34],
    cancelRequested: row[35] === 1,
    result: row[36],
    error: row[37],
  }
}

type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] }

/** What others see of it. */
export function toRun(record: RunRecord): Run {
  const run: Mutable<Run> = {
    id: String(record.id),
    target: targetOf(record.target, record.options),
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
  if (record.schedule !== null) run.schedule = record.schedule
  if (record.tick !== null) run.tick = record.tick
  if (record.backfill !== null) run.backfill = record.backfill
  if (record.key !== undefined) run.key = record.key
  if (record.dedupe !== null) run.dedupe = record.dedupe
  if (record.waitsFor !== undefined) run.waitsFor = record.waitsFor
  if (record.reason !== undefined) run.reason = record.reason
  if (record.startBy !== null) run.startBy = record.startBy
  if (record.token !== null) run.token = record.token
  if (record.instance !== null) run.instance = record.instance
  if (record.startedAt !== null) run.startedAt = record.startedAt
  if (record.finishedAt !== null) run.finishedAt = record.finishedAt
  if (record.cancelRequested) run.cancelRequested = true
  // What a transaction committed shows when the run has ended.
  if (record.result !== null && record.state === 'succeeded') run.result = fromText(record.result)
  if (record.error !== null) run.error = JSON.parse(record.error) as ErrorRecord
  return run
}

/** Names of jobs and sinks do not meet. */
export function targetName(target: Target): string {
  return 'job' in target ? `job:${target.job}` : `sink:${target.sink}`
}

function targetOf(name: string, options: string | null): Target {
  if (name.startsWith('job:')) return { job: name.slice(4) }
  const sink = name.slice(5)
  return options === null ? { sink } : { sink, options: fromText(options) }
}

export function targetOptions(target: Target): string | null {
  return 'sink' in target && target.options !== undefined ? toText(target.options) : null
}

export function toText(value: Json): string {
  return value === null ? 'null' : JSON.stringify(value)
}

export function fromText(text: string): Json {
  return text === 'null' ? null : (JSON.parse(text) as Json)
}

const GET = `select ${RUN_COLUMNS} from belfry_runs where id = ?`

export function loadRun({ db }: Pick<Tx, 'db'>, id: number): RunRecord | undefined {
  const row = db.get<RunRow>(GET, id)
  return row === undefined ? undefined : runRecord(row)
}

/** The number behind a run's id; undefined for a text that is none of ours. */
export function runNumber(id: string): number | undefined {
  return /^[1-9]\d{0,15}$/.test(id) ? Number(id) : undefined
}

const SAVE = `update belfry_runs set key = ?, key_limit = ?, key_waits = ?, unstamped = ?, state = ?, waits_for = ?,
  engaged = ?, reason = ?, ready_at = ?, start_by = ?, attempt = ?, failures = ?, takeovers = ?, token = ?, instance = ?,
  claim = ?, rescued = ?, committed = ?, settled_token = ?, started_at = ?, finished_at = ?, ended = ?, cancel = ?,
  result = ?, error = ? where id = ?`

export function saveRun({ db }: Tx, run: RunRecord): void {
  const place: Value[] = [stateNumber(run.state), waitNumber(run.waitsFor), flag(run.engaged), run.reason ?? null]
  const attempts: Value[] = [run.attempt, run.failures, run.takeovers, run.token, run.instance, run.claim]
  const marks: Value[] = [flag(run.rescued), flag(run.committed), run.settledToken, run.startedAt, run.finishedAt]
  db.run(
    SAVE,
    ...[...keyValues(run.key), flag(run.unstamped), ...place, run.readyAt, run.startBy, ...attempts, ...marks],
    ...[run.ended, flag(run.cancelRequested), run.result, run.error, run.id],
  )
}

export function keyValues(key: RunKey | undefined): [Value, Value, Value] {
  return key === undefined ? [null, null, null] : [key.name, key.limit, flag(key.whenBusy === 'wait')]
}

export function flag(on: boolean): number {
  return on ? 1 : 0
}

const INSERT = `insert into belfry_runs (target, options, origin, schedule, tick, backfill, slot, payload, priority, keep,
  key, key_limit, key_waits, unstamped, dedupe, dedupe_ms, state, waits_for, engaged, created_at, ready_at, start_by)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  on conflict (schedule, tick, slot) where schedule is not null do nothing`

export interface RunFields {
  readonly target: string
  readonly options: string | null
  readonly origin: Origin
  readonly schedule: string | null
  readonly tick: number | null
  readonly backfill: string | null
  readonly payload: string
  readonly priority: number
  readonly keep: Keep
  readonly key: RunKey | 'unstamped' | undefined
  readonly dedupe: string | null
  readonly dedupeMs: number | null
  readonly readyAt: number
  readonly startBy: number | null
  /** Whether it has to wait for others of its schedule. */
  readonly waits: boolean
}

/** Makes a run where it belongs: ready, or waiting. Undefined when the same tick or backfill is there already. */
export function insertRun({ db, now, wakes }: Tx, run: RunFields): number | undefined {
  const unstamped = run.key === 'unstamped'
  const waitsFor = run.waits ? 'overlap' : unstamped ? 'stamp' : undefined
  const slot = run.origin === 'tick' ? '' : run.origin === 'backfill' ? `b/${run.backfill}` : null
  if (waitsFor === undefined) wakes.add('runs')
  return db.insert(
    INSERT,
    ...[run.target, run.options, originNumber(run.origin), run.schedule, run.tick, run.backfill, slot, run.payload],
    ...[run.priority, keepNumber(run.keep), ...keyValues(run.key === 'unstamped' ? undefined : run.key)],
    ...[flag(unstamped), run.dedupe, run.dedupeMs, waitsFor === undefined ? 1 : 0, waitNumber(waitsFor)],
    ...[flag(waitsFor !== undefined || run.origin === 'tick'), now, run.readyAt, run.startBy],
  )
}
