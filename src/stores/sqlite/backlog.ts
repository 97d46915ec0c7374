import { backlogOf, type QueueBacklog } from '../../core/backlog.js'
import { type Backlog, MAX_BACKLOG_QUEUES } from '../../core/store.js'
import type { Connection } from './connection.js'
import { type Group, readyGroups } from './ready-runs.js'

/** Steps from each target of the index to the next. */
const TARGETS = `
with recursive targets (target) as (
  select min(target) from belfry_runs where state = 1
  union all
  select (select min(r.target) from belfry_runs r where r.state = 1 and r.target > targets.target)
  from targets where target is not null)
select json_group_array(target) from (select target from targets where target is not null limit ?)`

const COUNT = `select count(*) from (select 1 from belfry_runs
  where state = 1 and target = ? and priority = ? and ready_at <= ? limit ?)`

export function readyBacklog(db: Connection, now: number, limit: number): Backlog {
  const targets = db.get<[string]>(TARGETS, MAX_BACKLOG_QUEUES)?.[0] ?? '[]'
  const due = readyGroups(db, targets).filter(({ firstAt }) => firstAt <= now)
  return backlogOf(
    now,
    due.slice(0, MAX_BACKLOG_QUEUES).map((group) => counted(db, now, group, limit)),
  )
}

function counted(db: Connection, now: number, { target, priority, firstAt }: Group, limit: number): QueueBacklog {
  const found = db.get<[number]>(COUNT, target, priority, now, limit + 1)?.[0] ?? 0
  return { target, due: Math.min(found, limit), more: found > limit, oldestReadyAt: firstAt }
}
