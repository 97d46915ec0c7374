import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/runs/run.js'
import { targetName } from '../../../core/runs/stored-text.js'
import type { EnqueueResult } from '../../../core/store.js'
import { row, rows } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { type Steps, stepwise } from '../connection/write-queue.js'
import { isAvailable } from './available.js'
import { dedupeOf, openDedupe } from './dedupe.js'
import source from './enqueue.sql'
import { idOf, type NewRunColumns, newRunColumns, type RunName, type RunRow } from './run-codec.js'
import { endRun, requestCancel, skipRun } from './transitions.js'

/** A batch is one transaction: until it ends no process can write, not even a beat. */
const MOST = 10_000

export function enqueueRuns(tx: Tx, runs: readonly NewRun[]): Steps<EnqueueResult[]> {
  if (runs.length > MOST) {
    throw failure(
      'OPTION_INVALID',
      `${runs.length} runs at once are too many for a SQLite file, which has one writer: enqueue at most ${MOST} in one call`,
    )
  }
  return stepwise(runs, (run) => enqueueRun(tx, run))
}

const insertRun = row<NewRunColumns, { id: number }>(source, 'insertRun')

function enqueueRun(tx: Tx, run: NewRun): EnqueueResult {
  const target = targetName(run.target)
  const refused = refusal(tx, run, target)
  if (refused !== undefined) return refused
  const waits = run.schedule !== undefined && mustWait(tx, run.schedule, run)
  const columns = newRunColumns(run, tx.now, waits)
  const { id = 0 } = insertRun(tx, columns) ?? {}
  const made = { id, mark: columns.mark }
  openDedupe(tx, { ...made, target, dedupe: columns.dedupe })
  if (columns.state === 'ready') tx.wakes.add('runs')
  return { outcome: 'enqueued', run: idOf(made) }
}

type Backfill = { schedule: string; tick: number | null; backfill: string }
const sameBackfill = row<Backfill, RunName>(source, 'sameBackfill')

function refusal(tx: Tx, run: NewRun, target: string): EnqueueResult | undefined {
  const { dedupe, schedule, origin, tick = null, backfill } = run
  const same = dedupe === undefined ? undefined : dedupeOf(tx, { target, dedupe })
  if (same !== undefined) return { outcome: 'duplicate', run: idOf(same) }
  if (origin === 'backfill' && schedule !== undefined) {
    const known = sameBackfill(tx, { schedule, tick, backfill: String(backfill) })
    if (known !== undefined) return { outcome: 'duplicate', run: idOf(known) }
  }
  const winner = holderOfKey(tx, run) ?? (schedule === undefined ? undefined : overlapping(tx, schedule, run))
  return winner === undefined ? undefined : { outcome: 'busy', run: idOf(winner) }
}

const sameInstant = row<{ key: string; readyAt: number }, RunName>(source, 'sameInstant')
const firstEngaged = row<{ key: string }, RunName>(source, 'firstEngaged')

/** The run that keeps the key busy, when as many as its limit are due or running, or one is ready at the same instant. */
function holderOfKey(tx: Tx, { key, checkKey, readyAt, delayMs = 0 }: NewRun): RunName | undefined {
  if (!checkKey || key === undefined || key === 'unstamped') return undefined
  const at = readyAt ?? tx.now + delayMs
  if (at > tx.now) return sameInstant(tx, { key: key.name, readyAt: at })
  return isAvailable(tx, key.name, key.limit) ? undefined : firstEngaged(tx, { key: key.name })
}

const firstUnfinished = row<{ schedule: string }, RunName>(source, 'firstUnfinished')
const firstOverlap = row<{ schedule: string }, RunName>(source, 'firstOverlap')

function overlapping(tx: Tx, schedule: string, { overlap }: NewRun): RunName | undefined {
  if (overlap === 'skip') return firstUnfinished(tx, { schedule })
  return overlap === 'queue-one' ? firstOverlap(tx, { schedule }) : undefined
}

/** Whether a run has to wait for others of its schedule. */
function mustWait(tx: Tx, schedule: string, { overlap }: NewRun): boolean {
  if (overlap === undefined || overlap === 'allow') return false
  if (overlap === 'cancel-running') makeWay(tx, schedule)
  return firstUnfinished(tx, { schedule }) !== undefined
}

const unfinishedOf = rows<{ schedule: string; limit: number }, RunRow>(source, 'unfinishedOf')
/** SQLite reads a negative limit as none. */
const NO_LIMIT = -1

/** Oldest first. */
export function unfinishedRuns(tx: Tx, schedule: string, limit = NO_LIMIT): readonly RunRow[] {
  return unfinishedOf(tx, { schedule, limit })
}

/** Running runs are asked to cancel, those between attempts are cancelled, and those that never began are skipped. */
export function makeWay(tx: Tx, schedule: string): void {
  for (const run of unfinishedRuns(tx, schedule)) {
    if (run.state === 'running') requestCancel(tx, run)
    else if (run.attempt > 0) endRun(tx, run, 'cancelled')
    else skipRun(tx, run, 'overlap')
  }
}
