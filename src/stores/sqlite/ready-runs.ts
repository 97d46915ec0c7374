/** What can be claimed: the index of ready runs, by target, priority and instant. */
import type { Connection } from './connection.js'
import { READY_COLUMNS, type ReadyRow, type RunRecord, readyRecord } from './run-row.js'

/** Ready runs of one target and priority; the first of them may be still ahead. */
export interface Group {
  readonly target: string
  readonly priority: number
  readonly firstAt: number
}

const GROUPS = `
with recursive groups (target, priority) as (
  select value, (select max(priority) from belfry_runs where state = 1 and target = value) from json_each(?)
  union all
  select target, (
    select max(r.priority) from belfry_runs r
      where r.state = 1 and r.target = groups.target and r.priority < groups.priority)
  from groups where priority is not null)
select target, priority, (
  select min(r.ready_at) from belfry_runs r
    where r.state = 1 and r.target = groups.target and r.priority = groups.priority)
from groups where priority is not null`

/** Steps from each priority to the next lower: a look per priority, however many runs there are. */
export function readyGroups(db: Connection, targets: string): Group[] {
  const rows = db.all<[string, number, number]>(GROUPS, targets)
  return rows.map(([target, priority, firstAt]) => ({ target, priority, firstAt }))
}

const NEXT_AT = `select min(ready_at) from belfry_runs
  where state = 1 and target = ? and priority = ? and ready_at > ?`

/** The earliest instant still ahead. */
export function nextReadyAt(db: Connection, now: number, groups: readonly Group[]): number | undefined {
  let next = Number.POSITIVE_INFINITY
  for (const { target, priority, firstAt } of groups) {
    const ahead = firstAt > now ? firstAt : db.get<[number | null]>(NEXT_AT, target, priority, now)?.[0]
    next = Math.min(next, ahead ?? Number.POSITIVE_INFINITY)
  }
  return Number.isFinite(next) ? next : undefined
}

// As one text: drivers take several times as long to hand over a thousand rows of many values.
const DUE = `select json_group_array(json_array(${READY_COLUMNS})) from (
  select ${READY_COLUMNS} from belfry_runs
    where state = 1 and target = ? and priority = ? and ready_at <= ? order by ready_at, id limit ?)`

/** A run that is due, and the name of its key if it has one: then the rest of it is still to be read. */
export interface DueRun {
  readonly run: RunRecord
  readonly key: string | null
}

/** The first due runs of a group, in the order of claiming. */
export function dueRuns(db: Connection, now: number, { target, priority }: Group, limit: number): DueRun[] {
  const rows: readonly ReadyRow[] = JSON.parse(db.get<[string]>(DUE, target, priority, now, limit)?.[0] ?? '[]')
  return rows.map((row) => ({ run: readyRecord(row), key: row[10] }))
}
