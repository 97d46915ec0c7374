import { backlogOf, type QueueBacklog } from '../../../core/runs/backlog.js'
import type { Backlog } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'

/** Runs that are not due yet are in `delayed`, so all of `ready` counts. */
export function readyBacklog(state: MemoryState, limit: number): Backlog {
  const queues = Array.from(state.queues, ([target, { ready }]): QueueBacklog => {
    let oldestReadyAt = Number.POSITIVE_INFINITY
    let due = 0
    for (const { readyAt } of ready.items()) {
      if (due === limit) break
      due += 1
      oldestReadyAt = Math.min(oldestReadyAt, readyAt)
    }
    return { target, due, more: ready.size > due, oldestReadyAt }
  })
  return backlogOf(state.now, queues)
}
