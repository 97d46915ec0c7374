import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/runs/run.js'
import { targetName } from '../../../core/runs/stored-text.js'
import type { EnqueueResult } from '../../../core/store.js'
import { statement } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { type Steps, stepwise } from '../connection/write-queue.js'
import { oldestDue, oldestWaiting } from '../locks/pass-on.js'
import { countEngaged } from './available.js'
import { dedupeOf, openDedupe } from './dedupe.js'
import source from './enqueue.sql'
import { idOf, type NewRunColumns, newRunColumns, type RunName, type RunRow } from './run-codec.js'
import { endRun, loadRun, requestCancel, skipRun } from './transitions.js'

/** A batch is one transaction: until it ends no process can write, not even a beat. */
const MOST = 10_000

export function* enqueueRuns(tx: Tx, runs: readonly NewRun[]): Steps<EnqueueResult[]> {
  if (runs.length > MOST) {
    throw failure(
      'OPTION_INVALID',
      `${runs.length} runs at once are too many for a SQLite file, which has one writer: enqueue at most ${MOST} in one call`,
    )
  }
  return yield* stepwise(runs, (run) => enqueueRun(tx, run))
}

const insertRun = statement<NewRunColumns>(source, 'insertRun')

function enqueueRun(tx: Tx, run: NewRun): EnqueueResult {
  const target = targetName(run.target)
  const refused = refusal(tx, run, target)
  if (refused !== undefined) return refused
  const waits = run.schedule !== undefined && mustWait(tx, run.schedule, run)
  const columns = newRunColumns(run, tx.now, waits)
  const made = { id: tx.db.insert(insertRun, columns), mark: columns.mark }
  openDedupe(tx, target, columns.dedupe, made)
  if (columns.state === 'ready') tx.wakes.add('runs')
  return { outcome: 'enqueued', run: idOf(made) }
}

type Backfill = { schedule: string; tick: number | null; backfill: string }
const sameBackfill = statement<Backfill, RunName>(source, 'sameBackfill')

function refusal(tx: Tx, run: NewRun, target: string): EnqueueResult | undefined {
  const { dedupe, schedule, origin, tick = null, backfill } = run
  const same = dedupe === undefined ? undefined : dedupeOf(tx, target, dedupe)
  if (same !== undefined) return { outcome: 'duplicate', run: idOf(same) }
  if (origin === 'backfill' && schedule !== undefined) {
    const known = tx.db.get(sameBackfill, { schedule, tick, backfill: String(backfill) })
    if (known !== undefined) return { outcome: 'duplicate', run: idOf(known) }
  }
  const winner = holderOfKey(tx, run) ?? (schedule === undefined ? undefined : overlapping(tx, schedule, run))
  return winner === undefined ? undefined : { outcome: 'busy', run: idOf(winner) }
}

const sameInstant = statement<{ key: string; readyAt: number }, RunName>(source, 'sameInstant')

/** The run that keeps the key busy, when as many as its limit are due or running, or one is ready at the same instant. */
function holderOfKey(tx: Tx, { key, checkKey, readyAt, delayMs = 0 }: NewRun): RunName | undefined {
  if (!checkKey || key === undefined || key === 'unstamped') return undefined
  const at = readyAt ?? tx.now + delayMs
  if (at > tx.now) return tx.db.get(sameInstant, { key: key.name, readyAt: at })
  return countEngaged(tx, key.name, key.limit) < key.limit ? undefined : firstEngaged(tx, key.name)
}

const firstBegun = statement<{ key: string }, RunName & Pick<RunRow, 'state'>>(source, 'firstBegun')
const firstDueWaiting = statement<{ key: string; now: number }, RunName>(source, 'firstDueWaiting')

/**
 * The run that a busy key is reported with: a running one, else the oldest that is due, else one between attempts, else the
 * oldest that waits for other runs of its schedule.
 */
function firstEngaged(tx: Tx, key: string): RunName | undefined {
  const begun = tx.db.get(firstBegun, { key })
  if (begun?.state === 'running') return begun
  const oldest = Math.min(oldestDue(tx, key), oldestWaiting(tx, key)?.id ?? Number.POSITIVE_INFINITY)
  if (Number.isFinite(oldest)) return loadRun(tx.db, oldest)
  return begun ?? tx.db.get(firstDueWaiting, { key, now: tx.now })
}

function overlapping(tx: Tx, schedule: string, { overlap }: NewRun): RunName | undefined {
  if (overlap !== 'skip' && overlap !== 'queue-one') return undefined
  const waiting = tx.db.get(firstOverlap, { schedule })
  if (overlap === 'queue-one') return waiting
  const engaged = tx.db.get(firstEngagedOf, { schedule, now: tx.now })
  if (engaged === undefined || waiting === undefined) return engaged ?? waiting
  return engaged.id < waiting.id ? engaged : waiting
}

/** Whether a run has to wait for others of its schedule. */
function mustWait(tx: Tx, schedule: string, { overlap }: NewRun): boolean {
  if (overlap === undefined || overlap === 'allow') return false
  if (overlap === 'cancel-running') makeWay(tx, schedule)
  const isEngaged = tx.db.get(firstEngagedOf, { schedule, now: tx.now }) !== undefined
  return isEngaged || tx.db.get(firstOverlap, { schedule }) !== undefined
}

const firstEngagedOf = statement<{ schedule: string; now: number }, RunName>(source, 'firstEngagedOf')
const firstOverlap = statement<{ schedule: string }, RunName>(source, 'firstOverlap')

const unfinishedOf = statement<{ schedule: string; now: number }, RunRow>(source, 'unfinishedOf')

export function unfinishedRuns({ db, now }: Tx, schedule: string): readonly RunRow[] {
  return db.all(unfinishedOf, { schedule, now })
}

/** Running runs are asked to cancel, those between attempts are cancelled, and those that never began are skipped. */
export function makeWay(tx: Tx, schedule: string): void {
  for (const run of unfinishedRuns(tx, schedule)) {
    if (run.state === 'running') requestCancel(tx, run)
    else if (run.attempt > 0) endRun(tx, run, 'cancelled')
    else skipRun(tx, run, 'overlap')
  }
}
