import { backlogOf, type QueueBacklog } from '../../../core/runs/backlog.js'
import { type Backlog, MAX_BACKLOG_QUEUES } from '../../../core/store.js'
import type { Connection } from '../connection/connection.js'
import { statement } from '../connection/statements.js'
import source from './backlog.sql'
import { type Group, readyGroups } from './claim.js'

type Due = { target: string; priority: number; now: number; limit: number }

const readyTargets = statement<{ limit: number }, { targets: string }>(source, 'readyTargets')
const countDue = statement<Due, { due: number }>(source, 'countDue')

export function readyBacklog(db: Connection, now: number, limit: number): Backlog {
  const targets = db.get(readyTargets, { limit: MAX_BACKLOG_QUEUES })?.targets ?? '[]'
  const due = readyGroups(db, targets).filter(({ first_at }) => first_at <= now)
  return backlogOf(
    now,
    due.slice(0, MAX_BACKLOG_QUEUES).map((group) => counted(db, now, group, limit)),
  )
}

function counted(db: Connection, now: number, group: Group, limit: number): QueueBacklog {
  const { target, priority, first_at } = group
  const due = db.get(countDue, { target, priority, now, limit: limit + 1 })?.due ?? 0
  return { target, due: Math.min(due, limit), more: due > limit, oldestReadyAt: first_at }
}
