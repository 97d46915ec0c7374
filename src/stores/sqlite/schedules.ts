import { decidePause, decidePut, decideRemove, decideResume } from '../../core/declare.js'
import { checkPageLimit } from '../../core/page-limit.js'
import type { SkipRange } from '../../core/plan.js'
import type { SkipReason } from '../../core/policies.js'
import type { Schedule } from '../../core/schedule.js'
import type { Page, PutResult, RemoveResult, ScheduleQuery, ScheduleWrite } from '../../core/store.js'
import { afterPrefix, textOrder } from '../../core/text-order.js'
import type { Connection } from './connection.js'
import type { Value } from './driver.js'
import type { SqliteFile } from './file.js'
import { handOn } from './names.js'
import { addSkip, endRun, listedRuns } from './run-endings.js'
import { forgetSchedule, takeBackTicks, unclaimedTicks, writeSchedule } from './schedule-changes.js'
import { getSchedule, SCHEDULES, type ScheduleRow, toSchedule } from './schedule-row.js'
import type { Tx } from './tx.js'
import { listReadyTicks, listRunningTicks } from './unlisted-ticks.js'
import { type Steps, stepwise } from './write-queue.js'

/** One that throws takes the whole transaction with it. */
export function* putSchedules(tx: Tx, writes: readonly ScheduleWrite[]): Steps<PutResult[]> {
  const results = yield* stepwise(writes, (write) => putSchedule(tx, write))
  handOn(tx)
  return results
}

function putSchedule(tx: Tx, write: ScheduleWrite): PutResult {
  const { id, ifVersion } = write
  const existing = getSchedule(tx.db, id)
  if (ifVersion !== undefined && ifVersion !== (existing?.version ?? 0)) {
    return { outcome: 'conflict', schedule: existing }
  }
  return existing === undefined ? create(tx, write) : replace(tx, write, existing)
}

function create(tx: Tx, { id, definition }: ScheduleWrite): PutResult {
  const { outcome, schedule } = decidePut(id, definition, undefined, [], tx.counters.version + 1, tx.now)
  if (definition.overlap !== 'allow') listRunningTicks(tx, id)
  writeSchedule(tx, schedule)
  tx.counters.nextVersion()
  return { outcome, schedule }
}

function replace(tx: Tx, { id, definition }: ScheduleWrite, existing: Schedule): PutResult {
  const decision = decidePut(id, definition, existing, unclaimedTicks(tx, id), tx.counters.version + 1, tx.now)
  if (decision.outcome === 'unchanged') return decision
  tx.counters.nextVersion()
  takeBackTicks(tx, id, decision.takeBack)
  // Found by the target and the priority that it had until now.
  listReadyTicks(tx, id)
  if (definition.overlap !== 'allow') listRunningTicks(tx, id)
  writeSchedule(tx, decision.schedule)
  return { outcome: decision.outcome, schedule: decision.schedule }
}

const OF = 'select version, definition from belfry_schedules where id = ?'

export function* removeSchedules(tx: Tx, ids: readonly string[], ifVersion?: number): Steps<RemoveResult[]> {
  const results = yield* stepwise(ids, (id): RemoveResult => {
    const row = tx.db.get<[number, number]>(OF, id)
    if (row === undefined) return 'missing'
    const [version, definition] = row
    if (ifVersion !== undefined && ifVersion !== version) return 'conflict'
    removeSchedule(tx, id, definition)
    return 'removed'
  })
  handOn(tx)
  return results
}

export function* applySchedules(
  tx: Tx,
  writes: readonly ScheduleWrite[],
  removals: readonly string[],
): Steps<PutResult[]> {
  const results = yield* putSchedules(tx, writes)
  yield* removeSchedules(tx, removals)
  return results
}

/** Runs that go on by themselves, running or asked for by hand, are not touched. */
function removeSchedule(tx: Tx, id: string, definition: number): void {
  const schedule = getSchedule(tx.db, id)
  if (schedule !== undefined) takeBackTicks(tx, id, decideRemove(schedule, unclaimedTicks(tx, id), tx.now))
  for (const run of listedRuns(tx, id)) {
    if (run.origin === 'tick' && run.attempt > 0 && run.state !== 'running') endRun(tx, run, 'cancelled')
  }
  forgetSchedule(tx, id, definition)
}

export function pauseSchedule(tx: Tx, id: string, note: string | undefined): Schedule | undefined {
  const before = getSchedule(tx.db, id)
  if (before === undefined) return undefined
  if (before.pausedAt !== undefined && before.pauseNote === note) return before
  const version = tx.counters.nextVersion()
  const { schedule, takeBack } = decidePause(before, unclaimedTicks(tx, id), version, tx.now, note)
  takeBackTicks(tx, id, takeBack)
  writeSchedule(tx, schedule)
  handOn(tx)
  return schedule
}

export function resumeSchedule(tx: Tx, id: string): Schedule | undefined {
  const before = getSchedule(tx.db, id)
  if (before?.pausedAt === undefined) return before
  const { schedule, skips } = decideResume(before, tx.counters.nextVersion(), tx.now)
  for (const range of skips) addSkip(tx, id, range)
  writeSchedule(tx, schedule)
  return schedule
}

/** How many schedules one look may pass over. */
const WINDOW = 2_000

/** In windows of ids, so that a search for the few among many does not hold up the event loop. */
export async function listSchedules(file: SqliteFile, query: ScheduleQuery): Promise<Page<Schedule>> {
  const { prefix = '', limit, look = Number.POSITIVE_INFINITY } = query
  checkPageLimit(limit)
  const { text, values } = conditions(query)
  const select = `${SCHEDULES} where s.id > ? and s.id <= ? and s.id >= ?${text} order by s.id limit ?`
  const items: Schedule[] = []
  const beyond = afterPrefix(prefix)
  let after = query.after === undefined || textOrder(query.after, prefix) < 0 ? beforeAll(prefix) : query.after
  for (let looked = 0; items.length <= limit && textOrder(after, beyond) < 0; looked += WINDOW) {
    const from = after
    if (looked >= look) return { items, next: from }
    const [upTo, rows] = await file.read((db): [string, readonly ScheduleRow[]] => {
      const end = text === '' ? beyond : windowEnd(db, from, prefix, beyond)
      return [end, db.all<ScheduleRow>(select, from, end, prefix, ...values, limit + 1 - items.length)]
    })
    items.push(...rows.map(toSchedule))
    after = upTo
    await file.breathe()
  }
  return items.length > limit ? { items: items.slice(0, limit), next: items[limit - 1]?.id ?? '' } : { items }
}

/** The prefix itself may be an id. */
function beforeAll(prefix: string): string {
  return prefix === '' ? '' : prefix.slice(0, -1)
}

const WINDOW_END = 'select id from belfry_schedules where id > ? and id >= ? and id <= ? order by id limit 1 offset ?'

function windowEnd(db: Connection, after: string, prefix: string, beyond: string): string {
  return db.get<[string]>(WINDOW_END, after, prefix, beyond, WINDOW)?.[0] ?? beyond
}

function conditions(query: ScheduleQuery): { text: string; values: Value[] } {
  const { state, job, sink, app, unstamped } = query
  const parts: [string, ...Value[]][] = []
  if (state === 'active') parts.push(['s.finished_at is null and s.paused_at is null'])
  if (state === 'paused') parts.push(['s.finished_at is null and s.paused_at is not null'])
  if (state === 'finished') parts.push(['s.finished_at is not null'])
  if (job !== undefined) parts.push(['s.target = ?', `job:${job}`])
  if (sink !== undefined) parts.push(['s.target = ?', `sink:${sink}`])
  if (app !== undefined) parts.push(['s.app = ?', app])
  if (unstamped) parts.push(['s.unstamped = 1'])
  return {
    text: parts.map(([condition]) => ` and ${condition}`).join(''),
    values: parts.flatMap(([, ...values]) => values),
  }
}

const SKIPS = `select from_at, to_at, count, reason from belfry_skips
  where schedule = ? and from_at <= ? and to_at >= ? order by from_at, seq limit ?`

export function skippedRanges(db: Connection, id: string, from: number, to: number, limit: number): SkipRange[] {
  const rows = db.all<[number, number, number, SkipReason]>(SKIPS, id, to, from, limit)
  return rows.map(([start, end, count, reason]) => ({ from: start, to: end, count, reason }))
}
