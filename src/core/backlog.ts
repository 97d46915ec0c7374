/** What a store found due for one job or sink and one priority. */
import type { Backlog, TargetBacklog } from './store.js'
import { targetOf } from './stored-text.js'

export interface QueueBacklog {
  /** As stores write it: `job:` or `sink:`, and the name. */
  readonly target: string
  readonly due: number
  readonly more: boolean
  readonly oldestReadyAt: number
}

/** Adds up what was found of the same job or sink: at other priorities, or in other shards. */
export function backlogOf(now: number, queues: Iterable<QueueBacklog>): Backlog {
  const found = new Map<string, TargetBacklog>()
  for (const { target, due, more, oldestReadyAt } of queues) {
    if (due === 0) continue
    const other = found.get(target)
    found.set(target, {
      target: targetOf(target, null),
      due: due + (other?.due ?? 0),
      more: more || (other?.more ?? false),
      oldestReadyAt: Math.min(oldestReadyAt, other?.oldestReadyAt ?? oldestReadyAt),
    })
  }
  return { now, targets: [...found.values()] }
}
