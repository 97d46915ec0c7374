/**
 * The planner: one pure function from a schedule and the time to the ticks to record. The ticker, preview, backfill and
 * the simulation's oracle all call it, so a preview shows what will fire.
 *
 * The planner decides for every tick after the cursor whether the tick becomes a run or a skip with a reason. Ticks at
 * or before the cursor are accounted for already. Long stretches of missed ticks are counted, not enumerated.
 *
 * A tick that was recorded in time and that no worker has started is missed as well, unless `backlog` is `keep`:
 *
 * - `skip`: once it is later than `grace`. `latest` and `all` with `within`: once it is older than that.
 * - `latest`, of a job: once it is later than `grace` and a newer tick of the schedule is due. So of the ticks that no
 *   worker could start, the newest remains, with those that are within `grace`.
 *
 * With `overlap: 'allow'` that is the run's `startBy`, and the claim skips a run that is past it. Under the other
 * policies older ticks keep newer ones from being recorded, so the plan for the newer one takes the older ones back. Ticks
 * that wait for a key or for an earlier run of the schedule, and events for sinks, wait on.
 *
 *     cursor         now        horizon
 *     ──┬─────×────×──┼────×───────┼────×──→ ticks
 *       │   due ticks │   ahead    │    └ nextAt
 *       └ planDue     └ planAhead
 */
import type { Timeline } from '../../time/timeline.js'
import type { Backlog, Missed, Overlap, SkipReason } from '../policies.js'
import { jitterMs } from './jitter.js'
import { CATCH_UP, lastMissed } from './missed.js'
import { scheduleTimeline, type TimelineFields } from './schedule-timeline.js'

/** The part of a schedule that planning depends on. */
export interface Plannable extends TimelineFields {
  readonly id: string
  /** Every tick at or before this instant has been accounted for. */
  readonly cursor: number
  readonly overlap: Overlap
  readonly missed: Missed
  readonly backlog?: Backlog
  /** Its runs may wait for their key or their sink, so a newer tick does not replace an older one. */
  readonly mayWait?: true
  /** Its runs wait until an instance that has the job's code computes their key. */
  readonly unstamped?: true
  readonly deadlineMs?: number
  readonly jitterMs: number
  /** How many ticks may still be recorded. */
  readonly remaining?: number
  readonly pausedAt?: number
}

/** A run of the schedule that has not ended: due, waiting, running, or between attempts. */
export interface Unfinished {
  readonly state: 'ready' | 'waiting' | 'running'
  /** Whether it was ever claimed. */
  readonly started: boolean
  /** The nominal instant, when it is the run of a tick. */
  readonly tick?: number
}

export interface PlannedTick {
  readonly at: number
  /** The tick plus its jitter: when the run may start. */
  readonly readyAt: number
  /** The last instant at which the run may start. */
  readonly startBy?: number
  /** `startBy` is the schedule's own deadline. Otherwise the missed policy set it. */
  readonly byDeadline?: true
  /** Whether its run waits for an earlier run of the schedule. */
  readonly waits: boolean
}

/** `count` skipped ticks, the first at `from` and the last at `to`. */
export interface SkipRange {
  readonly from: number
  readonly to: number
  readonly count: number
  readonly reason: SkipReason
}

export interface Plan {
  readonly ticks: readonly PlannedTick[]
  readonly skips: readonly SkipRange[]
  readonly cursor: number
  readonly remaining?: number
  /** The next tick that is not planned yet; absent when the schedule has none left. */
  readonly nextAt?: number
  /** Plan again when the horizon reaches this instant; absent while paused or finished. */
  readonly dueAt?: number
  /** Ticks up to this instant that were recorded and never claimed are taken back as `missed`. */
  readonly retractThrough?: number
  /** Running runs of the schedule are asked to cancel, and its other unfinished runs are skipped as `overlap`. */
  readonly cancelUnfinished?: true
}

/** The most ticks that one call returns. */
export const PLAN_LIMIT = 1_000

export function plan(
  schedule: Plannable,
  unfinished: readonly Unfinished[],
  now: number,
  horizon: number,
  limit = PLAN_LIMIT,
): Plan {
  const line = scheduleTimeline(schedule)
  const draft = new Draft(schedule, line, unfinished, now)
  if (schedule.pausedAt !== undefined) {
    draft.skipThrough(now, 'paused')
    return draft.finish(undefined)
  }
  const behind = planDue(draft, schedule, line, now, limit)
  if (behind) return draft.finish(now)
  const blocked = planAhead(draft, schedule, line, horizon, limit)
  const nextAt = draft.nextAt()
  // The overlap policy may keep the next tick from being recorded ahead. `dueAt` then lies beyond that tick by the
  // look-ahead, so that the schedule is planned again at the tick's instant.
  return draft.finish(nextAt === undefined ? undefined : blocked ? nextAt + horizon - now : nextAt)
}

/** Plans ticks up to now. Returns whether more are left for another call. */
function planDue(draft: Draft, schedule: Plannable, line: Timeline, now: number, limit: number): boolean {
  const oldest = line.next(schedule.cursor)
  if (oldest === undefined || oldest > now || draft.isUsedUp()) return false
  if (now - oldest > schedule.missed.graceMs) draft.catchUp(lastMissed(schedule.missed, line, schedule.cursor, now))
  const ticks = line.between(draft.cursor, now, limit)
  if (ticks.length > 0) draft.replaceIdle()
  for (const tick of ticks) if (!draft.decide(tick)) return false
  return ticks.length === limit && (line.next(draft.cursor) ?? Number.POSITIVE_INFINITY) <= now
}

/** Records ticks up to the horizon. Returns whether the overlap policy keeps further ticks from being recorded ahead. */
function planAhead(draft: Draft, schedule: Plannable, line: Timeline, horizon: number, limit: number): boolean {
  if (schedule.overlap === 'allow') {
    for (const tick of line.between(draft.cursor, horizon, limit)) if (!draft.decide(tick)) break
    return false
  }
  // Overlap is decided at the tick's instant. Only without an unfinished run can the next tick be recorded ahead,
  // because there is no run that it could overlap.
  if (draft.isBusy()) return true
  const [tick] = line.between(draft.cursor, horizon, 1)
  if (tick === undefined) return false
  draft.decide(tick)
  return true
}

/** Collects decisions tick by tick, oldest first. */
class Draft {
  cursor: number
  readonly #schedule: Plannable
  readonly #line: Timeline
  #unfinished: readonly Unfinished[]
  readonly #now: number
  readonly #ticks: PlannedTick[] = []
  readonly #skips: SkipRange[] = []
  #remaining: number
  #retractThrough: number | undefined
  #cancels = false

  constructor(schedule: Plannable, line: Timeline, unfinished: readonly Unfinished[], now: number) {
    this.#schedule = schedule
    this.#line = line
    this.#unfinished = unfinished
    this.#now = now
    this.cursor = schedule.cursor
    this.#remaining = schedule.remaining ?? Number.POSITIVE_INFINITY
  }

  isUsedUp(): boolean {
    return this.#remaining === 0
  }

  isBusy(): boolean {
    return this.#unfinished.length > 0 || this.#ticks.length > 0
  }

  nextAt(): number | undefined {
    return this.isUsedUp() ? undefined : this.#line.next(this.cursor)
  }

  /** Records or skips one tick. Returns false when `times` is used up. */
  decide(tick: number): boolean {
    if (this.isUsedUp()) return false
    this.cursor = tick
    const readyAt = this.#readyAt(tick)
    const deadline = readyAt + (this.#schedule.deadlineMs ?? Number.POSITIVE_INFINITY)
    const missedAfter = this.#missedAfter(tick, readyAt)
    const byDeadline = deadline <= missedAfter
    const startBy = byDeadline ? deadline : missedAfter
    if (startBy < this.#now) this.#skip(tick, tick, 1, byDeadline ? 'deadline' : 'missed')
    else if (startBy === Number.POSITIVE_INFINITY) this.#applyOverlap({ at: tick, readyAt, waits: false })
    else this.#applyOverlap({ at: tick, readyAt, startBy, ...(byDeadline ? { byDeadline } : {}), waits: false })
    return true
  }

  #readyAt(tick: number): number {
    return tick + jitterMs(this.#schedule.jitterMs, this.#schedule.id, tick)
  }

  /** The last instant at which a tick that is recorded may start, by the missed policy. */
  #missedAfter(tick: number, readyAt: number): number {
    const { missed, overlap, backlog } = this.#schedule
    if (backlog === 'keep') return Number.POSITIVE_INFINITY
    const oldest = readyAt + CATCH_UP[missed.policy].maxAgeMs(missed)
    if (overlap !== 'allow' || !this.#isReplaced() || this.#remaining <= 1) return oldest
    const next = this.#line.next(tick)
    return next === undefined ? oldest : Math.min(oldest, Math.max(readyAt + missed.graceMs, this.#readyAt(next)))
  }

  /** Whether a newer tick replaces older ones that no worker has started. */
  #isReplaced(): boolean {
    const { missed, backlog, mayWait } = this.#schedule
    return missed.policy === 'latest' && backlog !== 'keep' && mayWait === undefined
  }

  /** Takes back older ticks that no worker has started within grace. None of them waits for a run that has started. */
  replaceIdle(): void {
    if (!this.#isReplaced() || this.#schedule.overlap === 'cancel-running') return
    if (this.#unfinished.some(({ started }) => started)) return
    const { missed, unstamped } = this.#schedule
    const isLate = ({ state, tick }: Unfinished) =>
      (state === 'ready' || unstamped === true) &&
      tick !== undefined &&
      this.#now - this.#readyAt(tick) > missed.graceMs
    if (this.#unfinished.some(isLate)) this.#retract(this.cursor)
  }

  /** Skips the ticks that the missed policy drops. */
  catchUp(dropThrough: number): void {
    this.skipThrough(dropThrough, 'missed')
    const { missed, backlog } = this.#schedule
    if (CATCH_UP[missed.policy].retracts && backlog !== 'keep') this.#retract(dropThrough)
  }

  /** Takes back recorded ticks up to an instant that have not started. */
  #retract(through: number): void {
    this.#retractThrough = Math.max(through, this.#retractThrough ?? through)
    this.#unfinished = this.#unfinished.filter(({ started, tick }) => started || tick === undefined || tick > through)
  }

  /** Skips every tick up to an instant as one range, by counting. */
  skipThrough(instant: number, reason: SkipReason): void {
    const range = this.isUsedUp() ? undefined : skipRange(this.#line, this.cursor, instant, reason)
    if (range === undefined) return
    this.#skip(range.from, range.to, range.count, reason)
    this.cursor = range.to
  }

  finish(dueAt: number | undefined): Plan {
    const nextAt = this.nextAt()
    return {
      ticks: this.#ticks,
      skips: this.#skips,
      cursor: this.cursor,
      ...(this.#schedule.remaining === undefined ? {} : { remaining: this.#remaining }),
      ...(nextAt === undefined ? {} : { nextAt }),
      ...(dueAt === undefined ? {} : { dueAt }),
      ...(this.#retractThrough === undefined ? {} : { retractThrough: this.#retractThrough }),
      ...(this.#cancels ? { cancelUnfinished: true } : {}),
    }
  }

  /** Applies the overlap policy to a tick that is on time. */
  #applyOverlap(tick: PlannedTick): void {
    const { overlap } = this.#schedule
    if (overlap === 'allow' || !this.isBusy()) this.#record(tick, false)
    else if (overlap === 'cancel-running') this.#replace(tick)
    else if (overlap === 'queue-all' || (overlap === 'queue-one' && !this.#hasQueued())) this.#record(tick, true)
    else this.#skip(tick.at, tick.at, 1, 'overlap')
  }

  /** Whether a run of the schedule is queued that has not started. */
  #hasQueued(): boolean {
    return this.#ticks.length > 0 || this.#unfinished.some((run) => !run.started)
  }

  /** `cancel-running`: the newest tick replaces earlier ones of this plan and all unfinished runs. */
  #replace(tick: PlannedTick): void {
    const earlier = this.#ticks.pop()
    if (earlier !== undefined) {
      this.#remaining += 1
      this.#skip(earlier.at, earlier.at, 1, 'overlap')
    }
    this.#cancels = this.#unfinished.length > 0
    this.#record(
      tick,
      this.#unfinished.some((run) => run.state === 'running'),
    )
  }

  #record(tick: PlannedTick, waits: boolean): void {
    this.#ticks.push(waits ? { ...tick, waits } : tick)
    this.#remaining -= 1
  }

  #skip(from: number, to: number, count: number, reason: SkipReason): void {
    const last = this.#skips.at(-1)
    const joins = last !== undefined && last.reason === reason && this.#line.next(last.to) === from
    if (joins) this.#skips[this.#skips.length - 1] = { from: last.from, to, count: last.count + count, reason }
    else this.#skips.push({ from, to, count, reason })
  }
}

/** The ticks after one instant, up to and including another, as one range; undefined when there are none. */
export function skipRange(line: Timeline, after: number, through: number, reason: SkipReason): SkipRange | undefined {
  const from = line.next(after)
  const to = line.previous(through + 1)
  if (from === undefined || to === undefined || from > to) return undefined
  return { from, to, count: line.count(after, through), reason }
}
