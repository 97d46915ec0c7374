import { decidePause, decidePut, decideRemove, decideResume } from '../../core/declare.js'
import { checkPageLimit } from '../../core/page-limit.js'
import type { SkipRange } from '../../core/plan.js'
import type { SkipReason } from '../../core/policies.js'
import type { Schedule } from '../../core/schedule.js'
import type { Page, PutResult, RemoveResult, ScheduleQuery, ScheduleWrite } from '../../core/store.js'
import { afterPrefix } from '../../core/text-order.js'
import type { Database } from './connection/database.js'
import {
  type Change,
  changeSchedules,
  type Reading,
  readSchedules,
  SCHEDULE_CHANGE_FUNCTIONS,
  type Seen,
} from './schedule-changes.js'
import { SCHEDULE_COLUMNS, toSchedule } from './schedule-row.js'
import { withSchedules } from './transactions/with-schedules.js'

export const SCHEDULE_FUNCTIONS = SCHEDULE_CHANGE_FUNCTIONS

/** Versions are given by the database, when all is decided. */
const UNKNOWN_VERSION = -1

export function putSchedules(db: Database, writes: readonly ScheduleWrite[]): Promise<PutResult[]> {
  return applySchedules(db, writes, [])
}

export async function applySchedules(
  db: Database,
  writes: readonly ScheduleWrite[],
  removals: readonly string[],
): Promise<PutResult[]> {
  const ids = [...writes.map(({ id }) => id), ...removals]
  if (ids.length === 0) return []
  const repeatable = isRepeatable(...writes.map(({ ifVersion }) => ifVersion))
  return withSchedules(db, { ids, repeatable }, async (access) => {
    const { reading, changes, results } = decideAll(await readSchedules(access, ids), writes, removals)
    if (changes.size === 0) return { outcome: results, wakes: 0 }
    const { versions, wakes } = await changeSchedules(access, [...changes.values()], reading)
    return { outcome: results.map((result) => withVersion(result, versions)), wakes }
  })
}

function decideAll(reading: Reading, writes: readonly ScheduleWrite[], removals: readonly string[]) {
  const { now, seen } = reading
  const changes = new Map<string, Change>()
  const results = writes.map((write) => {
    const before = seen.get(write.id) ?? { schedule: undefined, unclaimed: [], mark: null }
    return decideWrite(write, before, changes, now)
  })
  for (const id of removals) decideRemoval(seen.get(id), changes, now)
  return { reading, changes, results }
}

/** What was written over one version would, repeated, take itself for somebody else's. */
function isRepeatable(...versions: readonly (number | undefined)[]): boolean {
  return versions.every((version) => version === undefined)
}

/** Several writes to one schedule in a batch build on each other, and are written as one. */
function decideWrite(write: ScheduleWrite, seen: Seen, changes: Map<string, Change>, now: number): PutResult {
  const { id, definition, ifVersion } = write
  const earlier = changes.get(id)
  const schedule = earlier?.schedule ?? seen.schedule
  if (ifVersion !== undefined && ifVersion !== (schedule?.version ?? 0)) return { outcome: 'conflict', schedule }
  const taken = new Set([...(earlier?.takeBack?.remove ?? []), ...(earlier?.takeBack?.skip ?? [])])
  const unclaimed = seen.unclaimed.filter(({ run }) => !taken.has(run))
  const decision = decidePut(id, definition, schedule, unclaimed, UNKNOWN_VERSION, now)
  if (decision.outcome === 'unchanged') return decision
  changes.set(id, { seen, schedule: decision.schedule, takeBack: joined(earlier?.takeBack, decision.takeBack) })
  return { outcome: decision.outcome, schedule: decision.schedule }
}

type TakeBack = NonNullable<Change['takeBack']>

function joined(one: TakeBack | undefined, other: TakeBack): TakeBack {
  if (one === undefined) return other
  return {
    remove: [...one.remove, ...other.remove],
    skip: [...one.skip, ...other.skip],
    reason: other.reason,
    unrecorded: [...one.unrecorded, ...other.unrecorded],
  }
}

function withVersion(result: PutResult, versions: ReadonlyMap<string, number>): PutResult {
  const { schedule } = result
  if (schedule === undefined || schedule.version !== UNKNOWN_VERSION) return result
  const version = versions.get(schedule.id) ?? schedule.version
  return { outcome: result.outcome, schedule: { ...schedule, version } }
}

export async function removeSchedules(
  db: Database,
  ids: readonly string[],
  ifVersion?: number,
): Promise<RemoveResult[]> {
  if (ids.length === 0) return []
  return withSchedules(db, { ids, repeatable: isRepeatable(ifVersion) }, async (access) => {
    const { now, seen } = await readSchedules(access, ids)
    const changes = new Map<string, Change>()
    const results = ids.map((id) => decideRemoval(seen.get(id), changes, now, ifVersion))
    if (changes.size === 0) return { outcome: results, wakes: 0 }
    const { wakes } = await changeSchedules(access, [...changes.values()], { now })
    return { outcome: results, wakes }
  })
}

function decideRemoval(
  found: Seen | undefined,
  changes: Map<string, Change>,
  now: number,
  ifVersion?: number,
): RemoveResult {
  if (found?.schedule === undefined || changes.has(found.schedule.id)) return 'missing'
  if (ifVersion !== undefined && ifVersion !== found.schedule.version) return 'conflict'
  const takeBack = decideRemove(found.schedule, found.unclaimed, now)
  changes.set(found.schedule.id, { seen: found, schedule: undefined, takeBack })
  return 'removed'
}

export function pauseSchedule(db: Database, id: string, note: string | undefined): Promise<Schedule | undefined> {
  return changeOne(db, id, (seen, schedule, now) => {
    if (schedule.pausedAt !== undefined && schedule.pauseNote === note) return undefined
    return { seen, ...decidePause(schedule, seen.unclaimed, UNKNOWN_VERSION, now, note) }
  })
}

export function resumeSchedule(db: Database, id: string): Promise<Schedule | undefined> {
  return changeOne(db, id, (seen, schedule, now) => {
    return schedule.pausedAt === undefined ? undefined : { seen, ...decideResume(schedule, UNKNOWN_VERSION, now) }
  })
}

function changeOne(
  db: Database,
  id: string,
  decide: (seen: Seen, schedule: Schedule, now: number) => Change | undefined,
): Promise<Schedule | undefined> {
  return withSchedules(db, { ids: [id] }, async (access) => {
    const { now, seen } = await readSchedules(access, [id])
    const found = seen.get(id)
    if (found?.schedule === undefined) return { outcome: undefined, wakes: 0 }
    const change = decide(found, found.schedule, now)
    if (change?.schedule === undefined) return { outcome: found.schedule, wakes: 0 }
    const { versions, wakes } = await changeSchedules(access, [change], { now })
    return { outcome: { ...change.schedule, version: versions.get(id) ?? UNKNOWN_VERSION }, wakes }
  })
}

/** What follows the schedules `s`, or the definitions `d`, which have their schedule's id. */
const AND = {
  s: 'join belfry.definitions d on d.id = s.definition',
  d: 'cross join lateral (select * from belfry.schedules where id = d.schedule and definition = d.id limit 1) s',
} as const
const FROM = `from belfry.schedules s ${AND.s}`
const GET = `select ${SCHEDULE_COLUMNS} ${FROM} where s.id = $1`

export async function getSchedule(db: Database, id: string): Promise<Schedule | undefined> {
  const [row] = await db.read(GET, [id])
  return row === undefined ? undefined : toSchedule(row)
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
  // States stand in no order of ids: those that are in another are passed over, but not all of them at once.
  const most = state === undefined ? undefined : look
  const looked = most === undefined ? table : `(select ${alias}.* ${within} limit $${values.length + 1})`
  const narrow = most === undefined ? where : ''
  const wanted = state === undefined ? narrow : `${narrow === '' ? 'where' : `${narrow} and`} ${STATES[state]}`
  const bound = most === undefined ? values : [...values, most]
  const sql = `select ${SCHEDULE_COLUMNS} from ${looked} ${alias} ${AND[alias]} ${wanted}
    order by ${id} limit $${bound.length + 1}`
  const rows = await db.search(sql, [...bound, limit + 1])
  const items = rows.slice(0, limit).map((row) => toSchedule(row))
  const last = items.at(-1)
  if (rows.length > limit && last !== undefined) return { items, next: last.id }
  if (most === undefined) return { items }
  const [end] = await db.search(`select ${id} ${within} offset $${values.length + 1} limit 1`, [...values, most - 1])
  return end === undefined ? { items } : { items, next: end[0] ?? '' }
}

/** What indexes find. Where the definition narrows the search, its indexes are the ones that stand in order. */
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

const SKIPS = `select from_at, to_at, count, reason from belfry.skips
  where schedule = $1 and from_at <= $3 and to_at >= $2 order by from_at, seq limit $4`

export async function skippedRanges(
  db: Database,
  id: string,
  from: number,
  to: number,
  limit: number,
): Promise<SkipRange[]> {
  const rows = await db.read(SKIPS, [id, from, to, limit])
  return rows.map(([first, last, count, reason]) => ({
    ...{ from: Number(first), to: Number(last), count: Number(count) },
    reason: reason as SkipReason,
  }))
}
