/** How a run ends, makes way, or is taken from whoever runs it. */

import type { ErrorRecord } from '../../core/errors.js'
import { lostMessage } from '../../core/lost.js'
import type { SkipRange } from '../../core/plan.js'
import type { SkipReason } from '../../core/policies.js'
import { isKept, MAX_TAKEOVERS, type RunState } from '../../core/run.js'
import { closeDedupe } from './dedupe.js'
import { become, makeReady } from './run-changes.js'
import { RUN_COLUMNS, type RunRecord, type RunRow, runRecord } from './run-row.js'
import { saveRun } from './run-write.js'
import type { Tx } from './tx.js'
import { listTicks } from './unlisted-ticks.js'

export interface Ending {
  readonly reason?: SkipReason
  readonly error?: ErrorRecord
  /** As text. */
  readonly result?: string
}

/** Ends a run: its key is freed, what waited for it is noted, and it stays in the history or not. */
export function endRun(tx: Tx, run: RunRecord, to: RunState, ending: Ending = {}): void {
  if (run.state === 'running') freeKey(tx, run)
  become(run, to)
  run.waitsFor = undefined
  disengage(tx, run)
  closeDedupe(tx, run)
  tx.wakes.add('settled')
  if (isKept(run.keep, to)) keepRun(tx, run, ending)
  else {
    if (ending.reason !== undefined) recordSkip(tx, run, ending.reason)
    deleteRun(tx, run)
  }
}

function keepRun(tx: Tx, run: RunRecord, { reason, error, result }: Ending): void {
  run.finishedAt = tx.now
  run.ended = tx.counters.nextEnded()
  run.reason = reason
  run.error = error === undefined ? null : JSON.stringify(error)
  run.result = result ?? null
  saveRun(tx, run)
}

export function skipRun(tx: Tx, run: RunRecord, reason: SkipReason): void {
  endRun(tx, run, 'skipped', { reason })
}

/** Removes a run that has not begun, as if it had never been recorded. */
export function unrecordRun(tx: Tx, run: RunRecord): void {
  disengage(tx, run)
  deleteRun(tx, run)
}

const DELETE = 'delete from belfry_runs where id = ?'

function deleteRun({ db }: Tx, run: RunRecord): void {
  db.run(DELETE, run.id)
}

/** Takes a run from whoever runs it: its token settles no more, and it is ready for another. */
export function takeOver(tx: Tx, run: RunRecord, died: boolean): 'ready' | 'ended' | 'lost' {
  if (run.committed) {
    endCommitted(tx, run)
    return 'ended'
  }
  if (run.cancelRequested) {
    endRun(tx, run, 'cancelled')
    return 'ended'
  }
  if (died && run.takeovers >= MAX_TAKEOVERS) {
    const message = lostMessage(run.takeovers + 1, run.instance)
    endRun(tx, run, 'failed', { error: { code: 'LOST', message } })
    return 'lost'
  }
  run.rescued = died
  giveBack(tx, run, tx.now)
  return 'ready'
}

/** Ends a run whose handler's transaction has committed: it has succeeded, whatever came after. */
export function endCommitted(tx: Tx, run: RunRecord): void {
  endRun(tx, run, 'succeeded', run.result === null ? {} : { result: run.result })
}

/** A running run becomes ready again, at once or later. */
export function giveBack(tx: Tx, run: RunRecord, readyAt: number): void {
  freeKey(tx, run)
  run.readyAt = readyAt
  makeReady(tx, run)
}

const ENGAGED = `
select ${RUN_COLUMNS} from belfry_runs
  where schedule = ? and ended is null and waits_for <> 2 and unlisted = 0 and (engaged = 1 or ready_at <= ?)
union all
select ${RUN_COLUMNS} from belfry_runs where schedule = ? and state = 0 and waits_for = 2
order by 1`

/** The schedule's unfinished runs that are due or began, and ticks recorded ahead. */
export function engagedRuns(tx: Tx, schedule: string): RunRecord[] {
  listTicks(tx, schedule)
  return listedRuns(tx, schedule)
}

/** Those of them that are listed. */
export function listedRuns({ db, now }: Tx, schedule: string): RunRecord[] {
  return db.all<RunRow>(ENGAGED, schedule, now, schedule).map(runRecord)
}

/** Running runs are asked to cancel, those between attempts are cancelled, and those that never began are skipped. */
export function makeWay(tx: Tx, schedule: string): void {
  for (const run of engagedRuns(tx, schedule)) {
    if (run.state === 'running') requestCancel(tx, run)
    else if (run.attempt > 0) endRun(tx, run, 'cancelled')
    else skipRun(tx, run, 'overlap')
  }
}

const REQUEST_CANCEL = 'update belfry_runs set cancel = 1 where id = ?'

export function requestCancel({ db, wakes }: Tx, run: RunRecord): void {
  db.run(REQUEST_CANCEL, run.id)
  wakes.add('attempts')
}

const ADD_SKIP = `insert into belfry_skips (schedule, from_at, to_at, count, reason, recorded_at)
  values (?, ?, ?, ?, ?, ?)`

export function addSkip({ db, now }: Tx, schedule: string, { from, to, count, reason }: SkipRange): void {
  db.run(ADD_SKIP, schedule, from, to, count, reason, now)
}

/** What the history does not keep of a skipped tick, the skips do. */
function recordSkip(tx: Tx, { schedule, tick, origin }: RunRecord, reason: SkipReason): void {
  if (schedule === null || tick === null || origin !== 'tick') return
  addSkip(tx, schedule, { from: tick, to: tick, count: 1, reason })
}

const FREE_KEY = 'delete from belfry_leases where run = ?'

function freeKey({ db, touchedNames }: Tx, { id, key }: RunRecord): void {
  if (key === undefined || db.run(FREE_KEY, id) === 0) return
  touchedNames.add(key.name)
}

/** It holds nobody up any more: whoever stood behind it may be next. */
function disengage({ touchedLanes, touchedNames }: Tx, { schedule, key }: RunRecord): void {
  if (schedule !== null) touchedLanes.add(schedule)
  if (key !== undefined) touchedNames.add(key.name)
}
