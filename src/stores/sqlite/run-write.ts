/** The statements that read, make and change one run. */
import type { RunKey } from '../../core/key.js'
import type { Keep, Origin } from '../../core/run.js'
import type { Value } from './driver.js'
import {
  keepNumber,
  originNumber,
  RUN_COLUMNS,
  type RunRecord,
  type RunRow,
  runRecord,
  stateNumber,
  waitNumber,
} from './run-row.js'
import type { Tx } from './tx.js'

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
  engaged = ?, unlisted = 0, reason = ?, ready_at = ?, start_by = ?, attempt = ?, failures = ?, takeovers = ?, token = ?, instance = ?,
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
