/**
 * The ticker records ticks.
 *
 * Every instance does this; none leads. Each step asks the store to take a batch of due schedules, plan them by the
 * store's own clock and record ticks and cursors in one transaction. Two instances that meet take different schedules,
 * or one loses silently, because what decides is the recording itself: a tick is unique by schedule and instant, and
 * the cursor that moved with it outlives all history.
 *
 * - Crash before the transaction: nothing happened; whoever steps next records the same ticks.
 * - Crash after it, or a lost reply: the ticks are recorded, and the cursor keeps them from being recorded again.
 * - A wrong clock here: plays no part. The store's now decides, and the timer is set from the store's answer.
 * - Paused for an hour in mid-step: the store never waits for us; others went on.
 */
import type { Clock } from '../../core/clock.js'
import { errorRecord } from '../../core/errors.js'
import { SOON_MS } from '../../core/hint.js'
import type { Logger } from '../../core/logger.js'
import { plan } from '../../core/plan.js'
import type { AdvanceResult, Planner, Store } from '../../core/store.js'
import type { Events } from '../events.js'
import { RUSH_MS, type Rush } from '../runs/burst-priority.js'

export interface TickerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly events: Events
  readonly log: Logger
  readonly batch: number
  readonly lookaheadMs: number
  readonly pollMs: number
  readonly rush: Rush
  /** Told when runs were recorded. */
  readonly onRecorded: () => void
}

export function ticker(options: TickerOptions): () => Promise<number> {
  const { store, clock, events, batch, lookaheadMs, pollMs, rush, onRecorded } = options
  const planSafely = planner(options.log)
  const hasTime = lookaheadMs * LEAD > RUSH_MS
  const lead = new Lead(lookaheadMs)
  return async function recordTicks() {
    if (hasTime) await rush.over()
    const begunAt = clock.monotonic()
    const result = await store.schedules.advance({ limit: batch, lookaheadMs, plan: planSafely })
    lead.took(clock.monotonic() - begunAt, result.schedules, result.schedules < batch)
    if (result.recorded > 0 || result.skipped > 0) {
      events.emit('ticks:recorded', { recorded: result.recorded, skipped: result.skipped })
      onRecorded()
    }
    if (result.schedules >= batch) return 0
    return Math.min(pollMs, SOON_MS / 2, untilDue(result, lookaheadMs, lead.ms))
  }
}

/** How long a schedule that cannot be planned here is left to others, whose zone data may be newer. */
const UNPLANNABLE_MS = 60_000

/** The planner, except that one schedule which it fails on does not keep a whole batch from being recorded. */
function planner(log: Logger): Planner {
  return (schedule, unfinished, now, horizon) => {
    try {
      return plan(schedule, unfinished, now, horizon)
    } catch (error) {
      log.error(
        { schedule: schedule.id, err: errorRecord(error) },
        'a schedule cannot be planned here; trying again in a minute',
      )
      const { cursor, remaining } = schedule
      const dueAt = horizon + UNPLANNABLE_MS
      return { ticks: [], skips: [], cursor, nextAt: dueAt, dueAt, ...(remaining === undefined ? {} : { remaining }) }
    }
  }
}

/** How much of the look-ahead recording takes up, as a rule. */
const LEAD = 0.7

/**
 * How long before a tick recording begins. A part of the look-ahead is left to those who start what is due now: schedules
 * that tick every second would otherwise be recorded just when the ticks of before are to start. Where so much was
 * recorded the last time that this would not do, it begins sooner.
 */
class Lead {
  readonly #lookaheadMs: number
  #spentMs = 0
  #schedules = 0
  ms: number

  constructor(lookaheadMs: number) {
    this.#lookaheadMs = lookaheadMs
    this.ms = lookaheadMs * LEAD
  }

  took(ms: number, schedules: number, isLast: boolean): void {
    this.#spentMs += ms
    this.#schedules += schedules
    if (!isLast) return
    if (this.#schedules > 0) {
      this.ms = Math.min(Math.max(this.#spentMs * SLACK, this.#lookaheadMs * LEAD), this.#lookaheadMs)
    }
    this.#spentMs = 0
    this.#schedules = 0
  }
}

/** How much longer recording may take than it took the last time. */
const SLACK = 1.5

function untilDue({ now, nextDueAt, schedules }: AdvanceResult, lookaheadMs: number, leadMs: number): number {
  if (nextDueAt === undefined) return Number.POSITIVE_INFINITY
  const isTakenByOthers = schedules === 0 && nextDueAt <= now + lookaheadMs
  return Math.max(nextDueAt - leadMs - now, isTakenByOthers ? TAKEN_MS : 1)
}

/** When to look again at what was due and could not be had, because others are at it: they may be stopped, or crash. */
const TAKEN_MS = 20
