/** Runs as rows: their columns, and how a row is read. */
import type { RunKey } from '../../core/key.js'
import type { SkipReason } from '../../core/policies.js'
import type { Keep, Origin, RunState, WaitsFor } from '../../core/run.js'

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

export const RUN_COLUMNS = `id, target, options, origin, schedule, tick, backfill, payload, priority, keep, key, key_limit, key_waits,
  unstamped, dedupe, dedupe_ms, state, waits_for, engaged, reason, created_at, ready_at, start_by, attempt, failures,
  takeovers, token, instance, claim, rescued, committed, settled_token, started_at, finished_at, ended, cancel, result,
  error`

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

/** The columns of a ready run that may differ from one to another: what a claim reads of each. */
export const READY_COLUMNS = `id, target, options, origin, schedule, tick, backfill, payload, priority, keep, key, dedupe,
  created_at, ready_at, start_by, attempt, failures, takeovers, token, rescued, cancel, error`

export type ReadyRow = readonly [
  ...[id: number, target: string, options: Text, origin: number, schedule: Text, tick: Instant, backfill: Text],
  ...[payload: string, priority: number, keep: number, key: Text, dedupe: Text, createdAt: number, readyAt: number],
  ...[startBy: Instant, attempt: number, failures: number, takeovers: number, token: Instant, rescued: number],
  ...[cancel: number, error: Text],
]

/** A ready run without a key, for starting it: what only other steps look at is left at its beginning. */
export function readyRecord(row: ReadyRow): RunRecord {
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
    key: undefined,
    unstamped: false,
    dedupe: row[11],
    dedupeMs: 0,
    state: 'ready',
    waitsFor: undefined,
    engaged: true,
    reason: undefined,
    createdAt: row[12],
    readyAt: row[13],
    startBy: row[14],
    attempt: row[15],
    failures: row[16],
    takeovers: row[17],
    token: row[18],
    instance: null,
    claim: 0,
    rescued: row[19] === 1,
    committed: false,
    settledToken: null,
    startedAt: null,
    finishedAt: null,
    ended: null,
    cancelRequested: row[20] === 1,
    result: null,
    error: row[21],
  }
}
