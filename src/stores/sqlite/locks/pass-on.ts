/**
 * Hands what an operation has freed to the next waiter, before the operation commits. No other module does.
 *
 * - A permit of a name goes to the oldest lock that waits, because its caller waits for the answer; else the oldest waiting
 *   runs become ready, as many as permits are free.
 * - When every unfinished run of a schedule waits for the others (`queue-one`, `queue-all`, `cancel-running`), the oldest becomes
 *   ready.
 */
import { statement } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import { keyLimit, type RunRow } from '../runs/run-codec.js'
import { makeReady } from '../runs/transitions.js'
import { grantLock, isBusy, liveHolders } from './acquire.js'
import source from './pass-on.sql'
import { dropWaiter } from './release.js'

const noteFreed = statement<{ name: string; now: number }>(source, 'noteFreed')

export function passOn(tx: Tx): void {
  const { db, now, freedNames, freedSchedules } = tx
  while (freedNames.size > 0 || freedSchedules.size > 0) {
    for (const name of freedNames) {
      freedNames.delete(name)
      grantWaiters(tx, name)
      readyWaitingRuns(tx, name)
      db.run(noteFreed, { name, now })
    }
    for (const schedule of schedulesWithWaiters(tx)) {
      const run = firstOfSchedule(tx, schedule)
      if (run !== undefined) makeReady(tx, run)
    }
  }
}

type WaiterRow = {
  holder: string
  ttl_ms: number
  permits: number
  instance: string | null
  floor: number
  until: number
}
const selectFirstWaiter = statement<{ name: string }, WaiterRow>(source, 'firstWaiter')

export function firstWaiter({ db }: Snapshot, name: string): WaiterRow | undefined {
  return db.get(selectFirstWaiter, { name })
}

/**
 * Gives free permits to the locks that wait, oldest first. Such a lock lasts only as long as the waiter's place would have: by
 * asking again, the waiter proves that it lives. Expired places are removed.
 */
export function grantWaiters(tx: Tx, name: string): void {
  for (let waiter = firstWaiter(tx, name); waiter !== undefined; waiter = firstWaiter(tx, name)) {
    const { holder, ttl_ms, permits, instance, floor, until } = waiter
    if (until > tx.now) {
      if (isBusy(tx, name, permits)) return
      grantLock(tx, name, { holder, ttlMs: Math.min(ttl_ms, until - tx.now), permits, instance, floor })
      tx.wakes.add({ handedTo: holder })
    }
    dropWaiter(tx, name, holder)
  }
}

const oldestDueRun = statement<{ name: string; now: number }, { run: number | null }>(source, 'oldestDueRun')
const selectOldestWaiting = statement<{ name: string }, RunRow>(source, 'oldestWaitingRun')

/** The id of the oldest run of a key that is ready and due; infinite when there is none. */
export function oldestDue({ db, now }: Snapshot, name: string): number {
  return db.get(oldestDueRun, { name, now })?.run ?? Number.POSITIVE_INFINITY
}

export function oldestWaiting({ db }: Snapshot, name: string): RunRow | undefined {
  return db.get(selectOldestWaiting, { name })
}

/**
 * Makes as many waiting runs ready as there are free permits, oldest first. A run behind an older one that is ready stays
 * where it is: it could not start.
 */
export function readyWaitingRuns(tx: Tx, name: string): void {
  let run = oldestWaiting(tx, name)
  if (run === undefined) return
  const due = oldestDue(tx, name)
  let taken = liveHolders(tx, name).length
  for (; run !== undefined && run.id < due && taken < keyLimit(run); run = oldestWaiting(tx, name)) {
    taken += 1
    makeReady(tx, run)
  }
}

const selectSchedules = statement<{ schedules: string }, { schedule: string }>(source, 'schedulesWithWaiters')
const selectFirst = statement<{ schedule: string; now: number }, RunRow>(source, 'firstOfSchedule')

/** The schedules that the operation has freed and that have waiting runs. */
function schedulesWithWaiters({ db, freedSchedules }: Tx): string[] {
  if (freedSchedules.size === 0) return []
  const schedules = JSON.stringify([...freedSchedules])
  freedSchedules.clear()
  return db.all(selectSchedules, { schedules }).map(({ schedule }) => schedule)
}

export function firstOfSchedule({ db, now }: Snapshot, schedule: string): RunRow | undefined {
  return db.get(selectFirst, { schedule, now })
}
