/**
 * Hands what an operation has freed to the next waiter, before the operation ends. No other module does.
 *
 * - A permit of a name goes to the oldest lock that waits, because its caller waits for the answer; else the oldest waiting
 *   runs become ready, as many as permits are free.
 * - When every unfinished run of a schedule waits for the others (`queue-one`, `queue-all`, `cancel-running`), the oldest becomes
 *   ready.
 */
import { makeReady } from '../runs/transitions.js'
import { type Lane, type MemoryState, type NameRecord, tidyName } from '../schema/state.js'
import { grantLock, isBusy, liveHolders } from './acquire.js'

export function passOn(state: MemoryState): void {
  const { freedNames, freedLanes } = state
  while (freedNames.size > 0 || freedLanes.size > 0) {
    for (const name of freedNames) {
      freedNames.delete(name)
      grantWaiters(state, name)
      readyWaitingRuns(state, name)
      tidyName(state, name)
    }
    for (const lane of freedLanes) {
      freedLanes.delete(lane)
      readyNextOf(state, lane)
    }
  }
}

/**
 * Gives free permits to the locks that wait, oldest first. Such a lock lasts only as long as the waiter's place would have: by
 * asking again, the waiter proves that it lives. Expired places are removed.
 */
export function grantWaiters(state: MemoryState, name: NameRecord): void {
  for (const waiter of name.waiters.values()) {
    if (waiter.until > state.now) {
      if (isBusy(state, name, waiter.permits)) return
      grantLock(state, name, { ...waiter, ttlMs: Math.min(waiter.ttlMs, waiter.until - state.now) })
      state.wakes.add({ handedTo: waiter.holder })
    }
    name.waiters.delete(waiter.holder)
  }
}

/**
 * Makes as many waiting runs ready as there are free permits, oldest first. A run behind an older one that is ready stays
 * where it is: it could not start.
 */
export function readyWaitingRuns(state: MemoryState, name: NameRecord): void {
  const { waiting, standing } = name
  const due = standing.first?.order ?? Number.POSITIVE_INFINITY
  let taken = liveHolders(name, state.now).length
  for (let run = waiting.first; run !== undefined && run.order < due; run = waiting.first) {
    if (taken >= (run.key?.limit ?? 1)) return
    taken += 1
    makeReady(state, run)
  }
}

function readyNextOf(state: MemoryState, { waiting, engaged }: Lane): void {
  const run = waiting.first
  if (run !== undefined && engaged.size === waiting.size) makeReady(state, run)
}
