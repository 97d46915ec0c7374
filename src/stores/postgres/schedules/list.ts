/** Reading schedules: one, or pages of them in order of id. */
import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { afterPrefix } from '../../../core/names/text-order.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import type { Page, ScheduleQuery } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { scheduleCodec } from './schedule-codec.js'

/** The join that adds the other table: the definition of each schedule `s`, or the schedule of each definition `d`. */
const AND = {
  s: 'join belfry.definitions d on d.id = s.definition',
  d: 'cross join lateral (select * from belfry.schedules where id = d.schedule and definition = d.id limit 1) s',
} as const
const FROM = `from belfry.schedules s ${AND.s}`
const GET = `select ${scheduleCodec.select('s')} ${FROM} where s.id = $1`

export async function getSchedule(db: Database, id: string): Promise<Schedule | undefined> {
  const [row] = await db.read(GET, [id])
  return row === undefined ? undefined : scheduleCodec.read(row)
}

const STATES = {
  active: 's.finished_at is null and s.paused_at is null',
  paused: 's.finished_at is null and s.paused_at is not null',
  finished: 's.finished_at is not null',
} as const

export async function listSchedules(db: Database, query: ScheduleQuery): Promise<Page<Schedule>> {
  checkPageLimit(query.limit)
  const { limit, state, look } = query
  const { id, alias, where, values } = narrowed(query)
  const table = alias === 's' ? 'belfry.schedules' : 'belfry.definitions'
  const within = `from ${table} ${alias} ${where} order by ${id}`
  // No index has the ids of one state in order. So with a state, one query reads at most `look` schedules, and filters
  // them.
  const most = state === undefined ? undefined : look
  const looked = most === undefined ? table : `(select ${alias}.* ${within} limit $${values.length + 1})`
  const narrow = most === undefined ? where : ''
  const wanted = state === undefined ? narrow : `${narrow === '' ? 'where' : `${narrow} and`} ${STATES[state]}`
  const bound = most === undefined ? values : [...values, most]
  const sql = `select ${scheduleCodec.select('s')} from ${looked} ${alias} ${AND[alias]} ${wanted}
    order by ${id} limit $${bound.length + 1}`
  const rows = await db.search(sql, [...bound, limit + 1])
  const items = rows.slice(0, limit).map(scheduleCodec.read)
  const last = items.at(-1)
  if (rows.length > limit && last !== undefined) return { items, next: last.id }
  if (most === undefined) return { items }
  const [end] = await db.search(`select ${id} ${within} offset $${values.length + 1} limit 1`, [...values, most - 1])
  return end === undefined ? { items } : { items, next: end[0] ?? '' }
}

/**
 * The conditions that an index can answer, and the table to read. With a condition on the definition, the table is
 * `definitions`, whose indexes are in order of the schedules' ids.
 */
function narrowed({ prefix, after, job, sink, app, unstamped }: ScheduleQuery) {
  const values: unknown[] = []
  const bind = (value: unknown) => `$${values.push(value)}`
  const alias = (job ?? sink ?? app ?? unstamped) ? ('d' as const) : ('s' as const)
  const id = alias === 'd' ? 'd.schedule' : 's.id'
  const conditions = [
    ...(prefix === undefined || prefix === ''
      ? []
      : [`${id} >= ${bind(prefix)} and ${id} < ${bind(afterPrefix(prefix))}`]),
    ...(after === undefined ? [] : [`${id} > ${bind(after)}`]),
    ...(job === undefined ? [] : [`d.target = ${bind(`job:${job}`)}`]),
    ...(sink === undefined ? [] : [`d.target = ${bind(`sink:${sink}`)}`]),
    ...(app === undefined ? [] : [`d.app = ${bind(app)}`]),
    ...(unstamped ? ['d.unstamped'] : []),
  ]
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  return { id, alias, where, values }
}
