/** The steps of a schedule's life. */
import type { TakeBack, UnclaimedTick } from '../../core/declare.js'
import type { Schedule } from '../../core/schedule.js'
import { addSkip, skipRun, unrecordRun } from './run-endings.js'
import { flag, loadRun, runNumber, targetName } from './run-row.js'
import type { ScheduleRecord } from './schedule-row.js'
import type { Tx } from './tx.js'

const DEFINITION_OF = `select s.definition, d.body from belfry_schedules s
  join belfry_definitions d on d.id = s.definition where s.id = ?`
const ADD_DEFINITION = 'insert into belfry_definitions (body) values (?)'
const FORGET_DEFINITION = 'delete from belfry_definitions where id = ?'
const WRITE = `insert into belfry_schedules (id, version, definition, anchor, cursor, remaining, next_at, due_at, queued,
    paused_at, pause_note, created_at, updated_at, finished_at, target, app, unstamped, removable)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  on conflict (id) do update set version = excluded.version, definition = excluded.definition, anchor = excluded.anchor,
    cursor = excluded.cursor, remaining = excluded.remaining, next_at = excluded.next_at, due_at = excluded.due_at,
    queued = excluded.queued, paused_at = excluded.paused_at, pause_note = excluded.pause_note,
    created_at = excluded.created_at, updated_at = excluded.updated_at, finished_at = excluded.finished_at,
    target = excluded.target, app = excluded.app, unstamped = excluded.unstamped, removable = excluded.removable`

/** Writes a schedule, new or changed. */
export function writeSchedule(tx: Tx, schedule: Schedule): void {
  const { db, wakes, counters } = tx
  const { id, version, definition, anchor, cursor, createdAt, updatedAt } = schedule
  const { target, app = null, key, onFinish } = definition
  if (schedule.dueAt !== undefined) wakes.add('schedules')
  db.run(
    WRITE,
    ...[id, version, replaceDefinition(tx, schedule), anchor, cursor, schedule.remaining ?? null],
    ...[schedule.nextAt ?? null, schedule.dueAt ?? null, counters.nextQueued(), schedule.pausedAt ?? null],
    ...[schedule.pauseNote ?? null, createdAt, updatedAt, schedule.finishedAt ?? null, targetName(target), app],
    ...[flag(key === 'unstamped'), flag(onFinish === 'remove' && app === null)],
  )
}

/** The number of the schedule's definition: the one it has, or that of a new one in its place. */
function replaceDefinition({ db }: Tx, { id, definition }: Schedule): number {
  const body = JSON.stringify(definition)
  const known = db.get<[number, string]>(DEFINITION_OF, id)
  if (known !== undefined && known[1] === body) return known[0]
  if (known !== undefined) db.run(FORGET_DEFINITION, known[0])
  return db.insert(ADD_DEFINITION, body) ?? 0
}

const MOVE = `update belfry_schedules set cursor = ?, remaining = ?, next_at = ?, due_at = ?, queued = ?, finished_at = ?
  where id = ?`

/** Writes where a schedule's timeline has got to; its definition is as it was. */
export function moveSchedule({ db, wakes, counters }: Tx, schedule: Schedule): void {
  const { id, cursor, remaining = null, nextAt = null, dueAt = null, finishedAt = null } = schedule
  if (dueAt !== null) wakes.add('schedules')
  db.run(MOVE, cursor, remaining, nextAt, dueAt, counters.nextQueued(), finishedAt, id)
}

const FORGET = 'delete from belfry_schedules where id = ?'

export function forgetSchedule({ db }: Tx, id: string, definition: ScheduleRecord['definition']): void {
  db.run(FORGET, id)
  db.run(FORGET_DEFINITION, definition)
}

const UNCLAIMED = `select id, tick from belfry_runs
  where schedule = ?1 and state < 3 and waits_for <> 2 and origin = 0 and attempt = 0
union all
select id, tick from belfry_runs where schedule = ?1 and state = 0 and waits_for = 2 and origin = 0 and attempt = 0
order by 1`

/** The schedule's ticks that were recorded and never claimed. */
export function unclaimedTicks({ db }: Tx, schedule: string): UnclaimedTick[] {
  return db.all<[number, number]>(UNCLAIMED, schedule).map(([id, tick]) => ({ run: String(id), tick }))
}

export function takeBackTicks(tx: Tx, schedule: string, { remove, skip, reason, unrecorded }: TakeBack): void {
  for (const range of unrecorded) addSkip(tx, schedule, range)
  for (const id of remove) {
    const run = loadRun(tx, runNumber(id) ?? 0)
    if (run !== undefined) unrecordRun(tx, run)
  }
  for (const id of skip) {
    const run = loadRun(tx, runNumber(id) ?? 0)
    if (run !== undefined) skipRun(tx, run, reason)
  }
}
