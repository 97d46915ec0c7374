/** Runs as rows: the only module that knows their columns, and how values of a run are encoded and decoded. */
import type { Json } from '../../../core/checks/json.js'
import type { ErrorRecord } from '../../../core/errors.js'
import type { SkipReason } from '../../../core/policies.js'
import type { RunKey } from '../../../core/runs/key.js'
import type { Keep, NewRun, Origin, Run, RunState, WaitsFor } from '../../../core/runs/run.js'
import { readRunId, runId, runNumber } from '../../../core/runs/run-id.js'
import { fromText, targetName, targetOf, targetOptions, toText } from '../../../core/runs/stored-text.js'
import type { Unfinished } from '../../../core/schedules/plan.js'
import type { Settlement, SkippedRun, Stamp } from '../../../core/store.js'
import { columnsOf, flag, integer, json, listOf, optional, type RowCodec, text, word } from '../schema/sql-function.js'

/** A JSON value as stored text. */
export const stored = { decode: (value: string | null): Json => fromText(value ?? 'null') }

/** A run's mark: a bigint in its table, hexadecimal digits in its id. */
export const mark = {
  ...text,
  encode: (digits: string): unknown => Number.parseInt(digits, 16),
  select: (column: string) => `pg_catalog.lpad(pg_catalog.to_hex(${column}), 12, '0')`,
}

/** Columns from which members of a run are composed. */
const parts = columnsOf({
  id: integer,
  mark,
  target: text,
  options: optional(text),
  key: optional(text),
  keyLimit: optional(integer),
  keyWhenBusy: optional(word<RunKey['whenBusy']>()),
  result: optional(stored),
})

/** Columns that are members of a run as they are. */
const members = columnsOf(
  {
    origin: word<Origin>(),
    schedule: optional(text),
    tick: optional(integer),
    backfill: optional(text),
    payload: stored,
    priority: integer,
    keep: word<Keep>(),
    dedupe: optional(text),
    state: word<RunState>(),
    waitsFor: { ...optional(word<WaitsFor>()), select: (column: string) => `nullif(${column}, 'nothing')` },
    reason: optional(word<SkipReason>()),
    createdAt: integer,
    readyAt: integer,
    startBy: optional(integer),
    attempt: integer,
    failures: integer,
    takeovers: integer,
    token: optional(integer),
    instance: optional(text),
    startedAt: optional(integer),
    finishedAt: optional(integer),
    cancelRequested: flag,
    error: optional(json<ErrorRecord>()),
  },
  parts.width,
)

/** A run as callers of the store see it. */
export const runCodec: RowCodec<Run> = {
  select: (alias) => `${parts.select(alias)}, ${members.select(alias)}`,
  read: (row) => {
    const { id, mark: digits, target, options, key, keyLimit = 1, keyWhenBusy = 'wait', result } = parts.read(row)
    const run = members.read(row)
    // Copying so many members by `...` would take longer than decoding the row.
    return Object.assign(
      run,
      { id: runId(id, digits), target: targetOf(target, options ?? null) },
      key === undefined ? {} : { key: { name: key, limit: keyLimit, whenBusy: keyWhenBusy } },
      // The result that a handler's transaction has committed is hidden until the run has ended.
      result === undefined || run.state !== 'succeeded' ? {} : { result },
    )
  },
}

interface ToldSkip extends Pick<SkippedRun, 'id' | 'origin' | 'reason'> {
  readonly target: string
  readonly schedule: string | null
  readonly tick: number | null
}

/** Decodes the JSON that `belfry.skipped_run` returns. */
export function toSkipped(told: string): SkippedRun {
  const { target, schedule, tick, ...run } = JSON.parse(told) as ToldSkip
  return {
    ...{ ...run, target: targetOf(target, null) },
    ...(schedule === null ? {} : { schedule }),
    ...(tick === null ? {} : { tick }),
  }
}

/** The columns of a key. */
export function keyColumns(key: RunKey | 'unstamped' | undefined) {
  if (key === undefined || key === 'unstamped') return {}
  return { key: key.name, key_limit: key.limit, key_when_busy: key.whenBusy }
}

/** Rows of `belfry.new_run`. */
export const newRuns = listOf('new_run', (run: NewRun) => ({
  target: targetName(run.target),
  options: targetOptions(run.target),
  origin: run.origin,
  schedule: run.schedule,
  tick: run.tick,
  backfill: run.backfill,
  payload: toText(run.payload),
  priority: run.priority,
  keep: run.keep,
  ready_at: run.readyAt,
  delay_ms: Math.ceil(run.delayMs ?? 0),
  ...keyColumns(run.key),
  unstamped: run.key === 'unstamped',
  check_key: (run.checkKey ?? false) && run.key !== 'unstamped',
  dedupe: run.dedupe,
  dedupe_ms: run.dedupe === undefined ? undefined : Math.ceil(run.dedupeForMs ?? 0),
  overlap: run.overlap ?? 'allow',
}))

/** Rows of `belfry.settlement`. */
export const settlementRows = listOf('settlement', ({ run, token, outcome }: Settlement) => ({
  run: runNumber(run),
  token,
  kind: outcome.kind,
  result: outcome.kind === 'succeeded' && outcome.result !== undefined ? toText(outcome.result) : undefined,
  error: 'error' in outcome && outcome.error !== undefined ? JSON.stringify(outcome.error) : undefined,
  delay_ms: outcome.kind === 'retry' ? Math.ceil(outcome.delayMs) : 0,
}))

/** Rows of `belfry.stamp`. */
export const stampRows = listOf('stamp', ({ run, key }: Stamp) => {
  const name = readRunId(run)
  return { run: name?.number, mark: name === undefined ? undefined : mark.encode(name.mark), ...keyColumns(key) }
})

/**
 * Decodes `belfry.unfinished_text`, the unfinished runs of a schedule. In `[["ready",false,7]]`, a run is ready, has
 * not started, and is the tick of instant 7.
 */
export function toUnfinished(text: string | undefined): Unfinished[] {
  if (text === undefined) return []
  return (JSON.parse(text) as [Unfinished['state'], boolean, number | null][]).map(([state, started, tick]) => ({
    ...{ state, started },
    ...(tick === null ? {} : { tick }),
  }))
}
