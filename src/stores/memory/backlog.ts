import { backlogOf, type QueueBacklog } from '../../core/backlog.js'
import type { Backlog } from '../../core/store.js'
import { ripen } from './run-changes.js'
import type { MemoryState } from './state.js'

/** Counts due runs exactly: they are in other queues than delayed ones. */
export function readyBacklog(state: MemoryState): Backlog {
  const now = state.clock.now()
  ripen(state, now)
  const queues = Array.from(state.queues, ([target, { ready }]): QueueBacklog => {
    let oldestReadyAt = Number.POSITIVE_INFINITY
    for (const { readyAt } of ready.items()) oldestReadyAt = Math.min(oldestReadyAt, readyAt)
    return { target, due: ready.size, more: false, oldestReadyAt }
  })
  return backlogOf(now, queues)
}
