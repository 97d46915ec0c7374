/**
 * All changes of a run's state. No other module makes them:
 *
 *     waiting ⇄ ready → running → succeeded | failed | cancelled
 *     waiting | ready → skipped | cancelled
 *     running → ready | waiting              retry, takeover, release at stop
 *     ready → failed                         too many takeovers after crashes
 *     failed | cancelled | skipped → ready   retried by hand
 *
 * Each step writes the row at once and notes which lock name and which schedule it has freed. `locks/pass-on.ts` serves
 * their waiters before the transaction commits.
 */
import { type ErrorRecord, failure } from '../../../core/errors.js'
import type { SkipReason } from '../../../core/policies.js'
import { lostMessage } from '../../../core/runs/lost-message.js'
import { isKept, MAX_TAKEOVERS, type RunState, type WaitsFor } from '../../../core/runs/run.js'
import { readRunId } from '../../../core/runs/run-id.js'
import { mayBecome } from '../../../core/runs/transitions.js'
import type { Connection } from '../connection/connection.js'
import { statement } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { releaseRunKey } from '../locks/release.js'
import { addSkip } from '../schedules/skips.js'
import { closeDedupe, openDedupe } from './dedupe.js'
import { flag, idOf, type KeyColumns, type RunName, type RunRow } from './run-codec.js'
import source from './transitions.sql'

const runById = statement<{ run: number }, RunRow>(source, 'runById')

export function loadRun(db: Connection, id: number): RunRow | undefined {
  return db.get(runById, { run: id })
}

/** By its public id; undefined for text that is no id of this store. */
export function findRun(db: Connection, id: string): RunRow | undefined {
  const name = readRunId(id)
  const run = name === undefined ? undefined : loadRun(db, name.number)
  return run?.mark === name?.mark ? run : undefined
}

const holdsKey = statement<{ run: number; token: number }, { held: number }>(source, 'holdsKey')

/** Whether the attempt still has the run. An expired key counts as held until another holder took it. */
export function isCurrent(db: Connection, run: RunRow, token: number): boolean {
  if (run.state !== 'running' || run.token !== token) return false
  return run.key === null || db.get(holdsKey, { run: run.id, token }) !== undefined
}

type Start = { runs: string; leastToken: number; instance: string; claim: number; now: number }
const startStatement = statement<Start>(source, 'startRuns')

/** The instance that starts runs, and the number of its claim. */
export interface Starter {
  readonly instance: string
  readonly claim: number
}

/** Starts ready runs whose keys, if they have any, were granted. */
export function startRuns(
  { db, now }: Tx,
  ids: readonly number[],
  { instance, claim }: Starter,
  leastToken: number,
): void {
  if (ids.length > 0) db.run(startStatement, { runs: JSON.stringify(ids), leastToken, instance, claim, now })
}

const readyStatement = statement<{ run: number; readyAt: number }>(source, 'makeReady')

/** Makes a run ready to be claimed, from `readyAt` on. A run whose key is not known yet waits for its stamp instead. */
export function makeReady(tx: Tx, run: RunRow, readyAt: number = run.ready_at): void {
  if (run.unstamped === 1) {
    makeWait(tx, run, 'stamp', readyAt)
    return
  }
  change(tx.db.run(readyStatement, { run: run.id, readyAt }), run, 'ready')
  tx.readied += 1
  tx.wakes.add('runs')
}

const waitStatement = statement<{ run: number; waitsFor: WaitsFor; readyAt: number }>(source, 'makeWait')

export function makeWait({ db }: Tx, run: RunRow, waitsFor: WaitsFor, readyAt: number = run.ready_at): void {
  change(db.run(waitStatement, { run: run.id, waitsFor, readyAt }), run, 'waiting')
}

export interface Ending {
  readonly reason?: SkipReason
  readonly error?: ErrorRecord
  /** JSON. */
  readonly result?: string | null
}

type Kept = {
  run: number
  state: RunState
  reason: string | null
  result: string | null
  error: string | null
  now: number
}
const endKept = statement<Kept>(source, 'endKept')
const forgetStatement = statement<{ run: number }>(source, 'forgetRun')

/** Ends a run and releases its key. `keep` says whether the run stays in the history. */
export function endRun(tx: Tx, run: RunRow, to: RunState, { reason, error, result }: Ending = {}): void {
  if (!mayBecome(run.state, to)) throw refused(run, to)
  if (run.state === 'running') releaseRunKey(tx, run)
  free(tx, run)
  closeDedupe(tx, run)
  tx.wakes.add('settled')
  if (isKept(run.keep, to)) {
    const kept = { reason: reason ?? null, result: result ?? null, error: error ? JSON.stringify(error) : null }
    change(tx.db.run(endKept, { run: run.id, state: to, ...kept, now: tx.now }), run, to)
    return
  }
  // A skipped tick that the history does not keep is recorded among the skips.
  if (reason !== undefined && run.origin === 'tick' && run.schedule !== null && run.tick !== null) {
    addSkip(tx, run.schedule, { from: run.tick, to: run.tick, count: 1, reason })
  }
  tx.db.run(forgetStatement, { run: run.id })
}

export function skipRun(tx: Tx, run: RunRow, reason: SkipReason): void {
  endRun(tx, run, 'skipped', { reason })
}

/** Removes a run that has not begun, as if it had never been recorded. */
export function unrecordRun(tx: Tx, run: RunRow): void {
  free(tx, run)
  tx.db.run(forgetStatement, { run: run.id })
}

/** The run holds up neither its schedule nor its key any more: their waiters may be next. */
function free({ freedSchedules, freedNames }: Tx, { schedule, key }: RunRow): void {
  if (schedule !== null) freedSchedules.add(schedule)
  if (key !== null) freedNames.add(key)
}

type Attempt = { run: number; failures: number; error: string | null; orphaned: number }
const noteAttempt = statement<Attempt>(source, 'noteAttempt')

/** A failed attempt is to be repeated after a delay. */
export function retryLater(tx: Tx, run: RunRow, error: ErrorRecord, delayMs: number): void {
  const noted = { failures: run.failures + 1, error: JSON.stringify(error), orphaned: 0 }
  tx.db.run(noteAttempt, { run: run.id, ...noted })
  giveBack(tx, run, tx.now + delayMs)
}

/** A running run becomes ready again, at once or later. */
export function giveBack(tx: Tx, run: RunRow, readyAt: number): void {
  releaseRunKey(tx, run)
  makeReady(tx, run, readyAt)
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
  tx.db.run(noteAttempt, { run: run.id, failures: run.failures, error: run.error, orphaned: flag(died) })
  giveBack(tx, run, tx.now)
  return 'ready'
}

/** Ends a run whose handler's transaction has committed: it has succeeded, whatever came after. */
export function endCommitted(tx: Tx, run: RunRow): void {
  endRun(tx, run, 'succeeded', { result: run.result })
}

const noteSettledStatement = statement<{ run: number; failed: number }>(source, 'noteSettled')

/** Records the token that settles the run, so that a repeated settlement is answered alike and changes nothing. */
export function noteSettled({ db }: Tx, { id }: RunRow, failed: boolean): void {
  db.run(noteSettledStatement, { run: id, failed: flag(failed) })
}

const requestCancelStatement = statement<{ run: number }>(source, 'requestCancel')

export function requestCancel({ db, wakes }: Tx, { id }: RunRow): void {
  db.run(requestCancelStatement, { run: id })
  wakes.add('attempts')
}

const reopenStatement = statement<{ run: number; now: number }>(source, 'reopen')

/** Makes a run that has ended ready again. Its failures and takeovers are counted from zero. */
export function reopenRun(tx: Tx, run: RunRow): void {
  openDedupe(tx, run.target, run.dedupe, run)
  change(tx.db.run(reopenStatement, { run: run.id, now: tx.now }), run, 'ready')
  tx.readied += 1
  tx.wakes.add('runs')
}

const stampStatement = statement<{ run: number } & KeyColumns>(source, 'stamp')

/** Sets a run's key, or none. A run that waited only for this becomes ready. */
export function stampRun(tx: Tx, run: RunRow, key: KeyColumns): void {
  tx.db.run(stampStatement, { run: run.id, ...key })
  if (run.waits_for === 'stamp') makeReady(tx, { ...run, unstamped: 0 })
}

/** An attempt that has succeeded. */
export interface Success {
  readonly run: number
  readonly token: number
  /** JSON. */
  readonly result: string | null
}

type Ended = RunName & { token: number }
const succeedStatement = statement<{ attempts: string; now: number }, Ended>(source, 'succeedPlain')
const forgetPlain = statement<{ attempts: string }, Ended>(source, 'forgetPlain')

/** Ends the attempts that are current and free nothing. Returns the token of each by its run. */
export function succeedPlain({ db, now, wakes }: Tx, successes: readonly Success[]): ReadonlyMap<string, number> {
  if (successes.length === 0) return new Map()
  const attempts = JSON.stringify(successes)
  const kept = db.all(succeedStatement, { attempts, now })
  const forgotten = kept.length < successes.length ? db.all(forgetPlain, { attempts }) : []
  wakes.add('settled')
  return new Map([...kept, ...forgotten].map((run) => [idOf(run), run.token]))
}

function change(changed: number, run: RunRow, to: RunState): void {
  if (changed !== 1) throw refused(run, to)
}

function refused(run: RunRow, to: RunState) {
  return failure('TRANSITION_REFUSED', `run ${run.id} is ${run.state} and cannot become ${to}`)
}
