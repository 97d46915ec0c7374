import { backlogOf, type QueueBacklog } from '../../../core/runs/backlog.js'
import { type Backlog, MAX_BACKLOG_QUEUES } from '../../../core/store.js'
import { statement } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import source from './backlog.sql'
import { type Group, readyGroups } from './claim.js'

type Due = { target: string; priority: number; now: number; limit: number }

const readyTargets = statement<{ limit: number }, { targets: string }>(source, 'readyTargets')
const countDue = statement<Due, { due: number }>(source, 'countDue')

export function readyBacklog(snapshot: Snapshot, limit: number): Backlog {
  const { db, now } = snapshot
  const targets = db.get(readyTargets, { limit: MAX_BACKLOG_QUEUES })?.targets ?? '[]'
  const due = readyGroups(snapshot, targets).filter(({ first_at }) => first_at <= now)
  return backlogOf(
    now,
    due.slice(0, MAX_BACKLOG_QUEUES).map((group) => counted(snapshot, group, limit)),
  )
}

function counted({ db, now }: Snapshot, group: Group, limit: number): QueueBacklog {
  const { target, priority, first_at } = group
  const due = db.get(countDue, { target, priority, now, limit: limit + 1 })?.due ?? 0
  return { target, due: Math.min(due, limit), more: due > limit, oldestReadyAt: first_at }
}
