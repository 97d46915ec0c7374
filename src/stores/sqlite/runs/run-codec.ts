/** A run as a row of `belfry_runs`, and what others see of it. The only file that knows how a run is stored. */
import type { ErrorRecord } from '../../../core/errors.js'
import type { Mutable } from '../../../core/mutable.js'
import type { SkipReason } from '../../../core/policies.js'
import type { RunKey } from '../../../core/runs/key.js'
import type { Keep, NewRun, Origin, Run, RunState, WaitsFor } from '../../../core/runs/run.js'
import { newMark, runId } from '../../../core/runs/run-id.js'
import { fromText, targetName, targetOf, targetOptions, toText } from '../../../core/runs/stored-text.js'
import type { SkippedRun } from '../../../core/store.js'

/** The columns are explained in `schema/tables.sql`. Flags are 1 or 0. */
export type RunRow = {
  readonly id: number
  readonly mark: string
  state: RunState
  waits_for: WaitsFor | null
  reason: SkipReason | null
  readonly target: string
  readonly options: string | null
  readonly origin: Origin
  readonly schedule: string | null
  readonly tick: number | null
  readonly backfill: string | null
  readonly payload: string
  readonly priority: number
  readonly keep: Keep
  key: string | null
  key_limit: number | null
  key_when_busy: RunKey['whenBusy'] | null
  unstamped: number
  readonly dedupe: string | null
  readonly dedupe_ms: number | null
  readonly created_at: number
  ready_at: number
  start_by: number | null
  readonly by_deadline: number | null
  engaged: number
  readonly attempt: number
  failures: number
  takeovers: number
  orphaned: number
  readonly token: number | null
  readonly instance: string | null
  readonly claim: number | null
  readonly started_at: number | null
  cancel_requested: number
  readonly committed: number
  settled_token: number | null
  finished_at: number | null
  result: string | null
  error: string | null
}

/** The columns that `toRun` reads. */
export const SHOWN_COLUMNS = [
  ...(['id', 'mark', 'state', 'waits_for', 'reason', 'target', 'options', 'origin'] as const),
  ...(['schedule', 'tick', 'backfill', 'payload', 'priority', 'keep', 'dedupe'] as const),
  ...(['key', 'key_limit', 'key_when_busy', 'created_at', 'ready_at', 'start_by'] as const),
  ...(['attempt', 'failures', 'takeovers', 'token', 'instance', 'started_at'] as const),
  ...(['cancel_requested', 'finished_at', 'result', 'error'] as const),
] satisfies (keyof RunRow)[]

export type ShownRow = Pick<RunRow, (typeof SHOWN_COLUMNS)[number]>

export function toSkipped(row: RunRow, reason: SkipReason): SkippedRun {
  return {
    ...{ id: idOf(row), target: targetOf(row.target, null), origin: row.origin, reason },
    ...(row.schedule === null ? {} : { schedule: row.schedule }),
    ...(row.tick === null ? {} : { tick: row.tick }),
  }
}

/** What a run's id is made of. */
export type RunName = Pick<RunRow, 'id' | 'mark'>

export function idOf({ id, mark }: RunName): string {
  return runId(id, mark)
}

export function toRun(row: ShownRow): Run {
  const run: Mutable<Run> = {
    id: idOf(row),
    target: targetOf(row.target, row.options),
    origin: row.origin,
    payload: fromText(row.payload),
    priority: row.priority,
    keep: row.keep,
    state: row.state,
    createdAt: row.created_at,
    readyAt: row.ready_at,
    attempt: row.attempt,
    failures: row.failures,
    takeovers: row.takeovers,
  }
  const key = keyOf(row)
  if (row.schedule !== null) run.schedule = row.schedule
  if (row.tick !== null) run.tick = row.tick
  if (row.backfill !== null) run.backfill = row.backfill
  if (key !== undefined) run.key = key
  if (row.dedupe !== null) run.dedupe = row.dedupe
  if (row.waits_for !== null) run.waitsFor = row.waits_for
  if (row.reason !== null) run.reason = row.reason
  if (row.start_by !== null) run.startBy = row.start_by
  if (row.token !== null) run.token = row.token
  if (row.instance !== null) run.instance = row.instance
  if (row.started_at !== null) run.startedAt = row.started_at
  if (row.finished_at !== null) run.finishedAt = row.finished_at
  if (row.cancel_requested === 1) run.cancelRequested = true
  // A committed transaction stores its result before the run ends: it is shown afterwards.
  if (row.result !== null && row.state === 'succeeded') run.result = fromText(row.result)
  if (row.error !== null) run.error = JSON.parse(row.error) as ErrorRecord
  return run
}

export function keyOf({ key, key_limit, key_when_busy }: ShownRow): RunKey | undefined {
  if (key === null || key_limit === null || key_when_busy === null) return undefined
  return { name: key, limit: key_limit, whenBusy: key_when_busy }
}

/** How many runs may have the run's key at once. */
export function keyLimit({ key_limit }: Pick<RunRow, 'key_limit'>): number {
  return key_limit ?? 1
}

/** The columns that a key takes, of runs and schedules. */
export function keyColumns(key: RunKey | 'unstamped' | undefined) {
  const { name = null, limit = null, whenBusy = null } = typeof key === 'object' ? key : {}
  return { key: name, key_limit: limit, key_when_busy: whenBusy, unstamped: flag(key === 'unstamped') }
}

/** The parameters of `insertRun` in `enqueue.sql`. */
export type NewRunColumns = ReturnType<typeof newRunColumns>

/** `waits`: the run waits for other runs of its schedule. */
export function newRunColumns(run: NewRun, now: number, waits: boolean) {
  const waitsFor: WaitsFor | null = waits ? 'overlap' : run.key === 'unstamped' ? 'stamp' : null
  const { key, key_limit, key_when_busy, unstamped } = keyColumns(run.key)
  // Member by member: V8 takes 18 µs to spread one object into another of this size, and 0.2 µs for this.
  return {
    mark: newMark(),
    key,
    key_limit,
    key_when_busy,
    unstamped,
    state: waitsFor === null ? ('ready' as const) : ('waiting' as const),
    waitsFor,
    target: targetName(run.target),
    options: targetOptions(run.target),
    origin: run.origin,
    schedule: run.schedule ?? null,
    tick: run.tick ?? (run.origin === 'trigger' ? now : null),
    backfill: run.backfill ?? null,
    payload: toText(run.payload),
    priority: run.priority,
    keep: run.keep,
    dedupe: run.dedupe ?? null,
    dedupeMs: run.dedupeForMs ?? 0,
    readyAt: run.readyAt ?? now + (run.delayMs ?? 0),
    engaged: flag(waitsFor !== null || run.origin === 'tick'),
  }
}

export function flag(on: boolean): number {
  return on ? 1 : 0
}
