import type { Backlog, TargetBacklog } from '../store.js'
import { targetOf } from './stored-text.js'

/** The due runs of one job or sink at one priority. */
export interface QueueBacklog {
  /** As stores write it, by `targetName`: `job:send-digest`, `sink:kafka`. */
  readonly target: string
  readonly due: number
  readonly more: boolean
  readonly oldestReadyAt: number
}

/** Adds up the queues of each job and sink: a store counts them by priority, Redis also by shard. */
export function backlogOf(now: number, queues: Iterable<QueueBacklog>): Backlog {
  const found = new Map<string, TargetBacklog>()
  for (const { target, due, more, oldestReadyAt } of queues) {
    if (due === 0) continue
    const earlier = found.get(target)
    found.set(target, {
      target: targetOf(target, null),
      due: due + (earlier?.due ?? 0),
      more: more || (earlier?.more ?? false),
      oldestReadyAt: Math.min(oldestReadyAt, earlier?.oldestReadyAt ?? oldestReadyAt),
    })
  }
  return { now, targets: [...found.values()] }
}
