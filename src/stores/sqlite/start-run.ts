/** How a run starts: it gets its token, and its key if it has one. Or it may not start now, and leaves the queue. */
import { nextToken } from '../../core/token.js'
import {
  addLease,
  isBusy,
  lastToken,
  makeRoom,
  oldestStanding,
  oldestWaiting,
  serveWaiters,
  wakeRuns,
} from './names.js'
import { become, makeWait } from './run-changes.js'
import { skipRun } from './run-endings.js'
import type { RunRecord } from './run-row.js'
import { saveRun } from './run-write.js'
import type { Tx } from './tx.js'

/** On whose behalf runs are started. */
export interface Starter {
  readonly instance: string
  readonly claim: number
  readonly floor: number
}

export function isTooLate({ attempt, startBy }: RunRecord, now: number): boolean {
  return attempt === 0 && startBy !== null && now > startBy
}

const START_PLAIN = `update belfry_runs set state = 2, engaged = 1, attempt = attempt + 1,
  takeovers = takeovers + rescued, rescued = 0, committed = 0, token = max(coalesce(token, 0) + 1, ?), instance = ?,
  claim = ?, started_at = ? where id in (select value from json_each(?))`

/** Starts runs that have no key, all at once. */
export function startPlain({ db, now }: Tx, runs: readonly RunRecord[], { instance, claim, floor }: Starter): void {
  if (runs.length === 0) return
  const least = nextToken(0, now, floor)
  db.run(START_PLAIN, least, instance, claim, now, JSON.stringify(runs.map(({ id }) => id)))
  for (const run of runs) begin(run, nextToken(run.token ?? 0, now, floor), now, instance, claim)
}

/** Starts a run that has a key, or takes it out of the queue because it may not start now. */
export function startKeyed(tx: Tx, run: RunRecord, name: string, { instance, claim, floor }: Starter): boolean {
  if (!mayTakeKey(tx, run, name)) return false
  const token = nextToken(Math.max(run.token ?? 0, lastToken(tx, name)), tx.now, floor)
  begin(run, token, tx.now, instance, claim)
  saveRun(tx, run)
  addLease(tx, { name, holder: `run:${run.id}:${token}`, token, expiresAt: null, instance, run: run.id })
  // With permits left, whoever waited only because this run stood before it is next.
  if ((run.key?.limit ?? 1) > 1) wakeRuns(tx, name)
  return true
}

function begin(run: RunRecord, token: number, now: number, instance: string, claim: number): void {
  become(run, 'running')
  run.engaged = true
  run.attempt += 1
  if (run.rescued) run.takeovers += 1
  run.rescued = false
  run.committed = false
  run.token = token
  run.startedAt = now
  run.instance = instance
  run.claim = claim
}

/** A key is free for a run when a permit is, and no older run that is due stands before it. */
function mayTakeKey(tx: Tx, run: RunRecord, name: string): boolean {
  const limit = run.key?.limit ?? 1
  serveWaiters(tx, name)
  if (isBusy(tx, name, limit)) {
    if (run.attempt === 0 && run.key?.whenBusy === 'skip') skipRun(tx, run, 'busy')
    else makeWait(tx, run, 'key')
    return false
  }
  makeRoom(tx, name, limit)
  if (oldestStanding(tx, name) >= run.id && (oldestWaiting(tx, name)?.id ?? run.id) >= run.id) return true
  makeWait(tx, run, 'key')
  return false
}
