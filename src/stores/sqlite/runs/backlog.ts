import { backlogOf } from '../../../core/runs/backlog.js'
import { type Backlog, MAX_BACKLOG_QUEUES } from '../../../core/store.js'
import { rows } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import source from './backlog.sql'

type Queue = { target: string; first_at: number; due: number }
const dueQueues = rows<{ counted: number; queues: number }, Queue>(source, 'dueQueues')

export function readyBacklog(snapshot: Snapshot, limit: number): Backlog {
  const queues = dueQueues(snapshot, { counted: limit + 1, queues: MAX_BACKLOG_QUEUES })
  return backlogOf(
    snapshot.now,
    queues.map(({ target, first_at, due }) => {
      return { target, due: Math.min(due, limit), more: due > limit, oldestReadyAt: first_at }
    }),
  )
}
