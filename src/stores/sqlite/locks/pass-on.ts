/**
 * Hands what an operation has freed to the next waiter, before the operation commits. No other module does.
 *
 * - A permit of a name goes to the oldest lock that waits, because its caller waits for the answer; else the oldest waiting
 *   runs become ready, as many as permits are free.
 * - When every unfinished run of a schedule waits for the others (`queue-one`, `queue-all`, `cancel-running`), the oldest becomes
 *   ready.
 */
import { change, row } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import { keyLimit, type RunRow } from '../runs/run-codec.js'
import { makeReady } from '../runs/transitions.js'
import { grantLock, isBusy, type LockTerms, liveHolders } from './acquire.js'
import source from './pass-on.sql'
import { dropWaiter } from './release.js'

const noteFreed = change<{ name: string }>(source, 'noteFreed')
const firstOfSchedule = row<{ schedule: string }, RunRow>(source, 'firstOfSchedule')

export function passOn(tx: Tx): void {
  const { freedNames, freedSchedules } = tx
  while (freedNames.size > 0 || freedSchedules.size > 0) {
    for (const name of freedNames) {
      freedNames.delete(name)
      grantWaiters(tx, name)
      readyWaitingRuns(tx, name)
      noteFreed(tx, { name })
    }
    for (const schedule of freedSchedules) {
      freedSchedules.delete(schedule)
      const run = firstOfSchedule(tx, { schedule })
      if (run !== undefined) makeReady(tx, run)
    }
  }
}

const firstWaiter = row<{ name: string }, LockTerms & { until: number }>(source, 'firstWaiter')

/**
 * Gives free permits to the locks that wait, oldest first. Such a lock lasts only as long as the waiter's place would have: by
 * asking again, the waiter proves that it lives. Expired places are removed.
 */
export function grantWaiters(tx: Tx, name: string): void {
  for (let waiter = firstWaiter(tx, { name }); waiter !== undefined; waiter = firstWaiter(tx, { name })) {
    const { holder, ttlMs, permits, until } = waiter
    if (until > tx.now) {
      if (isBusy(tx, name, permits)) return
      grantLock(tx, { ...waiter, ttlMs: Math.min(ttlMs, until - tx.now) })
      tx.wakes.add({ handedTo: holder })
    }
    dropWaiter(tx, { name, holder })
  }
}

const oldestDueRun = row<{ name: string }, { run: number | null }>(source, 'oldestDueRun')
export const oldestWaiting = row<{ name: string }, RunRow>(source, 'oldestWaitingRun')

/** The id of the oldest run of a key that is ready and due; infinite when there is none. */
export function oldestDue(snapshot: Snapshot, name: string): number {
  return oldestDueRun(snapshot, { name })?.run ?? Number.POSITIVE_INFINITY
}

/**
 * Makes as many waiting runs ready as there are free permits, oldest first. A run behind an older one that is ready stays
 * where it is: it could not start.
 */
export function readyWaitingRuns(tx: Tx, name: string): void {
  let run = oldestWaiting(tx, { name })
  if (run === undefined) return
  const due = oldestDue(tx, name)
  let taken = liveHolders(tx, name).length
  for (; run !== undefined && run.id < due && taken < keyLimit(run); run = oldestWaiting(tx, { name })) {
    taken += 1
    makeReady(tx, run)
  }
}
