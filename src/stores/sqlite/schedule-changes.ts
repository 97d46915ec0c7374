/** The steps of a schedule's life. */
import type { TakeBack, UnclaimedTick } from '../../core/declare.js'
import { isSoon } from '../../core/hint.js'
import type { Schedule } from '../../core/schedule.js'
import { targetName, targetOptions, toText } from '../../core/stored-text.js'
import type { Value } from './driver.js'
import { addSkip, skipRun, unrecordRun } from './run-endings.js'
import { keepNumber } from './run-row.js'
import { flag, keyValues, loadRun, runNumber } from './run-write.js'
import { definitionBody } from './schedule-row.js'
import type { Tx } from './tx.js'
import { UNLISTED_READY } from './unlisted-ticks.js'

const DEFINITION_OF = `select d.id, d.body, d.payload from belfry_schedules s
  join belfry_definitions d on d.id = s.definition where s.id = ?`
const ADD_DEFINITION = `insert into belfry_definitions (schedule, body, payload, target, options, priority, keep, key,
  key_limit, key_waits, unstamped) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const FORGET_DEFINITION = 'delete from belfry_definitions where id = ?'
const WRITE = `insert into belfry_schedules (id, version, definition, anchor, cursor, remaining, next_at, due_at, queued,
    paused_at, pause_note, created_at, updated_at, finished_at, target, app, unstamped, removable)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  on conflict (id) do update set version = excluded.version, definition = excluded.definition, anchor = excluded.anchor,
    cursor = excluded.cursor, remaining = excluded.remaining, next_at = excluded.next_at, due_at = excluded.due_at,
    queued = excluded.queued, paused_at = excluded.paused_at, pause_note = excluded.pause_note,
    created_at = excluded.created_at, updated_at = excluded.updated_at, finished_at = excluded.finished_at,
    target = excluded.target, app = excluded.app, unstamped = excluded.unstamped, removable = excluded.removable`

/** Writes a schedule, new or in place of what it was. */
export function writeSchedule(tx: Tx, schedule: Schedule): void {
  const { db, now, wakes, counters } = tx
  const { id, version, definition, anchor, cursor, createdAt, updatedAt } = schedule
  const { target, app = null, key, onFinish } = definition
  if (isSoon(schedule.dueAt, now)) wakes.add('schedules')
  db.run(
    WRITE,
    ...[id, version, replaceDefinition(tx, schedule), anchor, cursor, schedule.remaining ?? null],
    ...[schedule.nextAt ?? null, schedule.dueAt ?? null, counters.nextQueued(), schedule.pausedAt ?? null],
    ...[schedule.pauseNote ?? null, createdAt, updatedAt, schedule.finishedAt ?? null, targetName(target), app],
    ...[flag(key === 'unstamped'), flag(onFinish === 'remove' && app === null)],
  )
}

/** The number of the schedule's definition: the one it has, or that of a new one in its place. */
function replaceDefinition(tx: Tx, schedule: Schedule): number {
  const { db } = tx
  const { id, definition } = schedule
  const [body, data] = [definitionBody(definition), toText(definition.payload)]
  const known = db.get<[number, string, string]>(DEFINITION_OF, id)
  if (known !== undefined && known[1] === body && known[2] === data) return known[0]
  if (known !== undefined) db.run(FORGET_DEFINITION, known[0])
  return addDefinition(tx, schedule, body, data)
}

function addDefinition({ db }: Tx, { id, definition }: Schedule, body: string, data: string): number {
  const { target, priority, keep, key } = definition
  const keyed = keyValues(key === 'unstamped' ? undefined : key)
  const unstamped = flag(key === 'unstamped')
  const run: Value[] = [targetName(target), targetOptions(target), priority, keepNumber(keep), ...keyed, unstamped]
  return db.insert(ADD_DEFINITION, id, body, data, ...run) ?? 0
}

const FORGET = 'delete from belfry_schedules where id = ?'

export function forgetSchedule({ db }: Tx, id: string, definition: number): void {
  db.run(FORGET, id)
  db.run(FORGET_DEFINITION, definition)
}

const UNCLAIMED = `select id, tick from belfry_runs
  where schedule = ?1 and ended is null and waits_for <> 2 and unlisted = 0 and origin = 0 and attempt = 0
union all
select id, tick from belfry_runs where ${UNLISTED_READY}
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
