/** What others see of a run, and how parts of it are written as text. */
import type { ErrorRecord } from '../../core/errors.js'
import type { Mutable } from '../../core/mutable.js'
import type { Run } from '../../core/run.js'
import { fromText, targetOf } from '../../core/stored-text.js'
import type { RunRecord } from './run-row.js'

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
