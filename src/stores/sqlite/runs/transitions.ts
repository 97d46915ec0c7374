/**
 * All changes of a run's state. No other module makes them:
 *
 *     waiting ⇄ ready → running → succeeded | failed | cancelled
 *     waiting | ready → skipped | cancelled
 *     running → ready | waiting              retry, takeover, release at stop
 *     ready → failed                         too many takeovers after crashes
 *     failed | cancelled | skipped → ready   retried by hand
 *
 * Each step changes the row that its operation has read, and writes it at once. It notes which lock name and which schedule it
 * has freed: `locks/pass-on.ts` serves their waiters before the transaction commits.
 */
import type { ErrorRecord } from '../../../core/errors.js'
import type { SkipReason } from '../../../core/policies.js'
import type { RunKey } from '../../../core/runs/key.js'
import { lostMessage } from '../../../core/runs/lost-message.js'
import { isKept, MAX_TAKEOVERS, type RunState, type WaitsFor } from '../../../core/runs/run.js'
import { readRunId } from '../../../core/runs/run-id.js'
import { become } from '../../../core/runs/transitions.js'
import { change, row, rows } from '../connection/statements.js'
import type { On, Tx } from '../connection/tx.js'
import { releaseRunKey } from '../locks/release.js'
import { addSkip } from '../schedules/skips.js'
import { closeDedupe, openDedupe } from './dedupe.js'
import { flag, keyColumns, type RunRow } from './run-codec.js'
import source from './transitions.sql'

export const runById = row<{ id: number }, RunRow>(source, 'runById')
const writeRun = change<RunRow>(source, 'writeRun')
const forgetRun = change<{ id: number }>(source, 'forgetRun')

/** By its public id; undefined for text that is no id of this store. */
export function findRun(on: On, id: string): RunRow | undefined {
  const name = readRunId(id)
  const run = name === undefined ? undefined : runById(on, { id: name.number })
  return run?.mark === name?.mark ? run : undefined
}

const holdsKey = row<{ run: number; token: number }, { held: number }>(source, 'holdsKey')

/** Whether the attempt still has the run. An expired key counts as held until another holder took it. */
export function isCurrent(on: On, run: RunRow, token: number): boolean {
  if (run.state !== 'running' || run.token !== token) return false
  return run.key === null || holdsKey(on, { run: run.id, token }) !== undefined
}

type Start = { runs: string; leastToken: number; instance: string; claim: number }

/** Starts ready runs, a JSON list of ids, whose keys, if they have any, were granted. */
export const startRuns = change<Start>(source, 'startRuns')

/** Makes a run ready to be claimed, from its `ready_at` on. A run whose key is not known yet waits for its stamp instead. */
export function makeReady(tx: Tx, run: RunRow): void {
  if (run.unstamped === 1) {
    makeWait(tx, run, 'stamp')
    return
  }
  become(run, 'ready')
  run.waits_for = null
  // A run that began counts as unfinished also while its next attempt is not due.
  if (run.attempt > 0) run.engaged = 1
  writeRun(tx, run)
  tx.readied += 1
  tx.wakes.add('runs')
}

export function makeWait(tx: Tx, run: RunRow, waitsFor: WaitsFor): void {
  become(run, 'waiting')
  run.waits_for = waitsFor
  run.engaged = 1
  writeRun(tx, run)
}

export interface Ending {
  readonly reason?: SkipReason
  readonly error?: ErrorRecord
  /** JSON. */
  readonly result?: string | null
}

/** Ends a run and releases its key. `keep` says whether the run stays in the history. */
export function endRun(tx: Tx, run: RunRow, to: RunState, { reason, error, result }: Ending = {}): void {
  if (run.state === 'running') releaseRunKey(tx, run)
  become(run, to)
  run.waits_for = null
  free(tx, run)
  closeDedupe(tx, run)
  tx.wakes.add('settled')
  if (isKept(run.keep, to)) {
    run.reason = reason ?? null
    run.result = result ?? null
    run.error = error === undefined ? null : JSON.stringify(error)
    run.finished_at = tx.now
    writeRun(tx, run)
    return
  }
  // A skipped tick that the history does not keep is recorded among the skips.
  if (reason !== undefined && run.origin === 'tick' && run.schedule !== null && run.tick !== null) {
    addSkip(tx, run.schedule, { from: run.tick, to: run.tick, count: 1, reason })
  }
  forgetRun(tx, run)
}

export function skipRun(tx: Tx, run: RunRow, reason: SkipReason): void {
  endRun(tx, run, 'skipped', { reason })
}

/** Removes a run that has not begun, as if it had never been recorded. */
export function unrecordRun(tx: Tx, run: RunRow): void {
  free(tx, run)
  forgetRun(tx, run)
}

/** The run holds up neither its schedule nor its key any more: their waiters may be next. */
function free({ freedSchedules, freedNames }: Tx, { schedule, key }: RunRow): void {
  if (schedule !== null) freedSchedules.add(schedule)
  if (key !== null) freedNames.add(key)
}

/** A running run becomes ready again, at once or later. */
export function giveBack(tx: Tx, run: RunRow, readyAt: number): void {
  releaseRunKey(tx, run)
  run.ready_at = readyAt
  makeReady(tx, run)
}

/** Takes a run from its instance: its token can no longer settle it, and another instance may claim it. */
export function takeOver(tx: Tx, run: RunRow, died: boolean): 'ready' | 'ended' | 'lost' {
  if (run.committed === 1) {
    endCommitted(tx, run)
    return 'ended'
  }
  if (run.cancel_requested === 1) {
    endRun(tx, run, 'cancelled')
    return 'ended'
  }
  if (died && run.takeovers >= MAX_TAKEOVERS) {
    const message = lostMessage(run.takeovers + 1, run.instance)
    endRun(tx, run, 'failed', { error: { code: 'LOST', message } })
    return 'lost'
  }
  run.orphaned = flag(died)
  giveBack(tx, run, tx.now)
  return 'ready'
}

/** Ends a run whose handler's transaction has committed: it has succeeded, whatever came after. */
export function endCommitted(tx: Tx, run: RunRow): void {
  endRun(tx, run, 'succeeded', { result: run.result })
}

export function requestCancel(tx: Tx, run: RunRow): void {
  run.cancel_requested = 1
  writeRun(tx, run)
  tx.wakes.add('attempts')
}

/** Makes a run that has ended ready again. Its failures and takeovers are counted from zero. */
export function reopenRun(tx: Tx, run: RunRow): void {
  Object.assign(run, {
    ...{ finished_at: null, reason: null, error: null, result: null, start_by: null, ready_at: tx.now },
    ...{ cancel_requested: 0, orphaned: 0, failures: 0, takeovers: 0 },
  } satisfies Partial<RunRow>)
  openDedupe(tx, run)
  makeReady(tx, run)
}

/** Sets a run's key, or none. A run that waited only for this becomes ready. */
export function stampRun(tx: Tx, run: RunRow, key: RunKey | undefined): void {
  Object.assign(run, keyColumns(key))
  if (run.waits_for === 'stamp') makeReady(tx, run)
  else writeRun(tx, run)
}

/** An attempt that has succeeded; `result` is JSON. */
export interface Success {
  readonly run: number
  readonly token: number
  readonly result: string | null
}

type Ended = { id: number; token: number }
const succeedKept = rows<{ attempts: string }, Ended>(source, 'succeedPlain')
const forgetPlain = rows<{ attempts: string }, Ended>(source, 'forgetPlain')

/**
 * Ends the attempts that are current and free nothing, and returns the token of each by its run's number. One by one they take three
 * times as long, and bench `runs` loses a quarter of its rate.
 */
export function succeedPlain(tx: Tx, successes: readonly Success[]): ReadonlyMap<number, number> {
  if (successes.length === 0) return new Map()
  const attempts = JSON.stringify(successes)
  const kept = succeedKept(tx, { attempts })
  const forgotten = kept.length < successes.length ? forgetPlain(tx, { attempts }) : []
  tx.wakes.add('settled')
  return new Map([...kept, ...forgotten].map(({ id, token }) => [id, token]))
}
