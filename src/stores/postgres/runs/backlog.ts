import { backlogOf } from '../../../core/runs/backlog.js'
import { type Backlog, MAX_BACKLOG_QUEUES } from '../../../core/store.js'
import type { Database } from '../connection/database.js'

/**
 * Steps from each target in the index to the next, and from each priority of a target to the next lower one. So it
 * reads at most `limit` runs of each queue, however many are ready.
 */
const BACKLOG = `
with recursive clock as materialized (select belfry.now_us() / 1000 as now),
targets(target) as (
  (select target from belfry.runs where state = 'ready' order by target limit 1)
  union all
  select (select r.target from belfry.runs r where r.state = 'ready' and r.target > t.target order by r.target limit 1)
    from targets t where t.target is not null
),
queues(target, priority) as (
  select t.target, (select r.priority from belfry.runs r
      where r.state = 'ready' and r.target = t.target order by r.priority desc limit 1)
    from targets t where t.target is not null
  union all
  select q.target, (select r.priority from belfry.runs r
      where r.state = 'ready' and r.target = q.target and r.priority < q.priority order by r.priority desc limit 1)
    from queues q where q.priority is not null
)
select c.now, q.target, d.due, d.oldest from clock c
  left join (select * from queues where priority is not null limit ${MAX_BACKLOG_QUEUES}) q on true
  left join lateral (
    select pg_catalog.count(*) as due, pg_catalog.min(r.ready_at) as oldest from (
      select ready_at from belfry.runs where state = 'ready' and target = q.target and priority = q.priority
        and ready_at <= c.now order by ready_at limit $1) r
  ) d on true`

export async function readyBacklog(db: Database, limit: number): Promise<Backlog> {
  const rows = await db.read(BACKLOG, [limit + 1])
  const queues = rows.flatMap(([, target, due, oldest]) => {
    const found = Number(due)
    if (target === null || target === undefined || found === 0) return []
    return [{ target, due: Math.min(found, limit), more: found > limit, oldestReadyAt: Number(oldest) }]
  })
  return backlogOf(Number(rows[0]?.[0]), queues)
}
