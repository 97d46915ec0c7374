/** The ticks of a range of time: ticks of the present timeline, and recorded ticks. */

import { checkOptions } from '../../core/checks/known-options.js'
import { systemClock } from '../../core/clock.js'
import { DEFAULTS } from '../../core/defaults.js'
import { failure, failureAt, quote } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import type { SkipReason } from '../../core/policies.js'
import type { Run, RunState } from '../../core/runs/run.js'
import type { SkipRange } from '../../core/schedules/plan.js'
import type { Schedule } from '../../core/schedules/schedule.js'
import { scheduleTimeline } from '../../core/schedules/schedule-timeline.js'
import type { Store } from '../../core/store.js'
import { type Instant, instantMs } from '../../time/instant.js'
import { located } from '../located.js'
import type { Explanation } from './explain.js'
import { refuseMissing } from './found-schedule.js'

export interface TicksOptions {
  readonly from: Instant
  readonly to: Instant
  /** The most ticks to return. Default 100, at most 1,000. */
  readonly limit?: number
}

export interface Tick {
  readonly at: Date
  /** Whether the schedule's present timeline has a tick at this instant. */
  readonly planned: boolean
  readonly status: Exclude<Explanation['status'], 'unknown-schedule' | 'not-a-tick'>
  readonly reason?: SkipReason
  readonly run?: Run
}

export interface Ticks {
  readonly ticks: readonly Tick[]
  /** Ranges of skipped ticks that overlap the range. */
  readonly skips: readonly SkipRange[]
  /** Where the next page begins, when there are more than the limit. */
  readonly next?: Date
}

const MAX_LIMIT = 1_000
/** How many of the newest runs are read. Older ticks are looked up one by one. */
const SCANNED = 1_000
/** For a removed schedule more runs are read: its timeline is gone, so no single ticks can be looked up. */
const SCANNED_OF_REMOVED = 10_000
/** A page grows while its runs are read quickly, which large payloads prevent. */
const FIRST_PAGE = 20
const LARGEST_PAGE = 500
const QUICK_MS = 20
/** A tick is recorded at most this long before its instant. */
const AHEAD_MS = 24 * 3_600_000

export async function scheduleTicks(store: Store, id: string, options: TicksOptions): Promise<Ticks> {
  const where = `ticks of "${id}"`
  checkOptions(options, ['from', 'to', 'limit'], where)
  const [from, to] = located(where, () => [instantMs(options.from), instantMs(options.to)] as const)
  if (to < from) throw failureAt(['to'], 'OPTION_INVALID', `${where}: the range ends before it begins`)
  const { limit = DEFAULTS.list.limit } = options
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw failure(
      'OPTION_INVALID',
      `${where}: limit is ${quote(limit)}; it must be a whole number from 1 to ${MAX_LIMIT}`,
    )
  }
  const schedule = await store.schedules.get(id)
  if (schedule !== undefined) return ticksBetween(store, schedule, from, to, limit)
  return (await ticksOfRemoved(store, id, from, to, limit)) ?? refuseMissing(id)
}

async function ticksBetween(store: Store, schedule: Schedule, from: number, to: number, limit: number): Promise<Ticks> {
  const line = scheduleTimeline({ ...schedule.definition, anchor: schedule.anchor })
  const planned = line.between(from - 1, to, limit + 1)
  const end = planned[limit] ?? to
  const now = await store.now()
  const past = planned.filter((at) => at <= schedule.cursor)
  const actual = await actualTicks(store, schedule.id, from, end, past, SCANNED)
  const skips = await store.schedules.skips(schedule.id, from, end, MAX_LIMIT)
  const isPlanned = new Set(planned)
  const all = [...new Set([...planned, ...actual.keys()])].sort((one, other) => one - other)
  const ticks = all.slice(0, limit).map((at): Tick => {
    const run = actual.get(at)
    return { at: new Date(at), planned: isPlanned.has(at), ...tickStatus(schedule, at, now, run, skips) }
  })
  const next = all[limit]
  return { ticks, skips, ...(next === undefined ? {} : { next: new Date(next) }) }
}

/**
 * The ticks of a removed schedule that are still in the history. Of a range of skipped ticks only the first and the
 * last are known, because the timeline is gone. Undefined when the store knows no such schedule.
 */
async function ticksOfRemoved(
  store: Store,
  id: string,
  from: number,
  to: number,
  limit: number,
): Promise<Ticks | undefined> {
  const actual = await actualTicks(store, id, from, to, [], SCANNED_OF_REMOVED)
  const skips = await store.schedules.skips(id, from, to, MAX_LIMIT)
  if (actual.size === 0 && skips.length === 0 && !(await hasTraces(store, id))) return undefined
  const ends = skips.flatMap((range) => [range.from, range.to]).filter((at) => from <= at && at <= to)
  const all = [...new Set([...actual.keys(), ...ends])].sort((one, other) => one - other)
  const ticks = all.slice(0, limit).map((at): Tick => {
    const happened = whatHappened(at, actual.get(at), skips) ?? { status: 'forgotten' }
    return { at: new Date(at), planned: false, ...happened }
  })
  const next = all[limit]
  return { ticks, skips, ...(next === undefined ? {} : { next: new Date(next) }) }
}

/** Whether the history knows runs or skips of a schedule. */
export async function hasTraces(store: Store, id: string): Promise<boolean> {
  const { items } = await store.runs.list({ schedule: id, limit: 1 })
  return items.length > 0 || (await store.schedules.skips(id, 0, Number.MAX_SAFE_INTEGER, 1)).length > 0
}

const STATUSES: Readonly<Record<RunState, Tick['status']>> = {
  waiting: 'waiting',
  ready: 'waiting',
  running: 'running',
  succeeded: 'ran',
  failed: 'failed',
  cancelled: 'cancelled',
  skipped: 'skipped',
}

function tickStatus(
  { cursor, createdAt, anchor, nextAt, pausedAt }: Schedule,
  at: number,
  now: number,
  run: Run | undefined,
  skips: readonly SkipRange[],
): Happened {
  const happened = whatHappened(at, run, skips)
  if (happened !== undefined) return happened
  if (at > cursor) {
    if (nextAt === undefined) return { status: 'finished' }
    return { status: pausedAt !== undefined ? 'paused' : at > now ? 'upcoming' : 'due' }
  }
  return { status: at <= createdAt || at <= anchor ? 'before-creation' : 'forgotten' }
}

type Happened = Pick<Tick, 'status' | 'reason' | 'run'>

/** Undefined when the store has no record of the tick. */
function whatHappened(at: number, run: Run | undefined, skips: readonly SkipRange[]): Happened | undefined {
  if (run !== undefined) {
    return { status: STATUSES[run.state], run, ...(run.reason === undefined ? {} : { reason: run.reason }) }
  }
  const skip = skips.find((range) => range.from <= at && at <= range.to)
  return skip === undefined ? undefined : { status: 'skipped', reason: skip.reason }
}

/** Reads the newest runs of the schedule. Then it looks up one by one the planned ticks that are older. */
async function actualTicks(
  store: Store,
  id: string,
  from: number,
  to: number,
  planned: readonly number[],
  most: number,
): Promise<Map<number, Run>> {
  const found = new Map<number, Run>()
  const keep = (run: Run) => {
    if (run.origin === 'tick' && run.tick !== undefined && run.tick >= from && run.tick <= to) found.set(run.tick, run)
  }
  let after: { readonly after?: string } = {}
  let size = FIRST_PAGE
  for (let scanned = 0; scanned < most; ) {
    const startedAt = systemClock.monotonic()
    const { items, next } = await store.runs.list({ schedule: id, limit: size, ...after })
    items.forEach(keep)
    scanned += items.length
    size = systemClock.monotonic() - startedAt < QUICK_MS ? Math.min(size * 2, LARGEST_PAGE) : Math.max(size >> 1, 1)
    const oldest = items.at(-1)
    if (next === undefined || oldest === undefined || oldest.createdAt < from - AHEAD_MS) return found
    after = { after: next }
  }
  const missing = planned.filter((tick) => !found.has(tick))
  await inTurns(missing, async (tick) => {
    const { items } = await store.runs.list({ schedule: id, tick, limit: 10 })
    items.forEach(keep)
  })
  return found
}
