/** Runs as rows: the one place that knows their columns, and how values of a run are written and read. */
import type { ErrorRecord } from '../../../core/errors.js'
import type { Mutable } from '../../../core/mutable.js'
import type { SkipReason } from '../../../core/policies.js'
import type { RunKey } from '../../../core/runs/key.js'
import type { Keep, NewRun, Origin, Run, RunState, WaitsFor } from '../../../core/runs/run.js'
import { readRunId, runId } from '../../../core/runs/run-id.js'
import { fromText, targetName, targetOf, targetOptions, toText } from '../../../core/runs/stored-text.js'
import type { Unfinished } from '../../../core/schedules/plan.js'
import type { Settlement, Stamp } from '../../../core/store.js'
import type { Row } from '../connection/database.js'
import { listOf, type RowCodec } from '../schema/sql-function.js'

/** What others see of a run. */
const COLUMNS = [
  'id',
  'mark',
  'target',
  'options',
  'origin',
  'schedule',
  'tick',
  'backfill',
  'payload',
  'priority',
  'keep',
  'key',
  'key_limit',
  'key_when_busy',
  'dedupe',
  'state',
  'waits_for',
  'reason',
  'created_at',
  'ready_at',
  'start_by',
  'attempt',
  'failures',
  'takeovers',
  'token',
  'instance',
  'started_at',
  'finished_at',
  'cancel_requested',
  'result',
  'error',
] as const

type ColumnName = (typeof COLUMNS)[number]
const AT = Object.fromEntries(COLUMNS.map((name, at) => [name, at])) as Readonly<Record<ColumnName, number>>

export const runCodec: RowCodec<Mutable<Run>> = {
  select: (alias) => COLUMNS.map((name) => `${alias}.${name}`).join(', '),
  read: toRun,
}

function toRun(row: Row, from = 0): Mutable<Run> {
  const value = (name: ColumnName) => row[from + AT[name]] ?? null
  const text = (name: ColumnName) => row[from + AT[name]] ?? ''
  const number = (name: ColumnName) => Number(row[from + AT[name]])
  const run: Mutable<Run> = {
    id: runId(text('id'), number('mark')),
    target: targetOf(text('target'), value('options')),
    origin: text('origin') as Origin,
    payload: fromText(text('payload')),
    priority: number('priority'),
    keep: text('keep') as Keep,
    state: text('state') as RunState,
    createdAt: number('created_at'),
    readyAt: number('ready_at'),
    attempt: number('attempt'),
    failures: number('failures'),
    takeovers: number('takeovers'),
  }
  if (value('schedule') !== null) run.schedule = text('schedule')
  if (value('tick') !== null) run.tick = number('tick')
  if (value('backfill') !== null) run.backfill = text('backfill')
  if (value('key') !== null) {
    run.key = { name: text('key'), limit: number('key_limit'), whenBusy: text('key_when_busy') as RunKey['whenBusy'] }
  }
  if (value('dedupe') !== null) run.dedupe = text('dedupe')
  if (text('waits_for') !== 'nothing') run.waitsFor = text('waits_for') as WaitsFor
  if (value('reason') !== null) run.reason = text('reason') as SkipReason
  if (value('start_by') !== null) run.startBy = number('start_by')
  if (value('token') !== null) run.token = number('token')
  if (value('instance') !== null) run.instance = text('instance')
  if (value('started_at') !== null) run.startedAt = number('started_at')
  if (value('finished_at') !== null) run.finishedAt = number('finished_at')
  if (text('cancel_requested') === 't') run.cancelRequested = true
  // What a transaction committed shows when the run has ended.
  if (value('result') !== null && run.state === 'succeeded') run.result = fromText(text('result'))
  if (value('error') !== null) run.error = JSON.parse(text('error')) as ErrorRecord
  return run
}

/** The number in a run's id; 0, which no run has, for a text that is no id. Attempts are told apart by their tokens. */
export function runNumber(id: string): number {
  return readRunId(id)?.number ?? 0
}

/** The key as its columns. */
export function keyColumns(key: RunKey | 'unstamped' | undefined) {
  if (key === undefined || key === 'unstamped') return {}
  return { key: key.name, key_limit: key.limit, key_when_busy: key.whenBusy }
}

/** New runs, as `belfry.new_run`. */
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

/** How attempts ended, as `belfry.settlement`. */
export const settlementRows = listOf('settlement', ({ run, token, outcome }: Settlement) => ({
  run: runNumber(run),
  token,
  kind: outcome.kind,
  result: outcome.kind === 'succeeded' && outcome.result !== undefined ? toText(outcome.result) : undefined,
  error: 'error' in outcome && outcome.error !== undefined ? JSON.stringify(outcome.error) : undefined,
  delay_ms: outcome.kind === 'retry' ? Math.ceil(outcome.delayMs) : 0,
}))

/** Keys of runs, as `belfry.stamp`. */
export const stampRows = listOf('stamp', ({ run, key }: Stamp) => {
  const name = readRunId(run)
  return { run: name?.number, mark: name?.mark, ...keyColumns(key) }
})

/** A schedule's unfinished runs, of the text that a plan is compared with before it is written: `[["ready",false,7]]`. */
export function toUnfinished(text: string | undefined): Unfinished[] {
  if (text === undefined) return []
  return (JSON.parse(text) as [Unfinished['state'], boolean, number | null][]).map(([state, started, tick]) => ({
    ...{ state, started },
    ...(tick === null ? {} : { tick }),
  }))
}
