/**
 * The ticker records ticks.
 *
 * Every instance has one, and none leads. Each step asks the store for a batch of due schedules, plans them by the
 * store's clock, and has the store write ticks and cursors in one transaction. That write makes a tick happen once: a
 * tick is unique by schedule and instant, and the cursor that moves with it outlives all history. Two instances that
 * step at the same time take different schedules, or one of them writes nothing.
 *
 * What each step survives:
 * - A crash before the transaction: nothing happened, and the next step of any instance records the same ticks.
 * - A crash after the transaction, or a lost reply: the ticks are recorded, and the cursor keeps them from being
 *   recorded again.
 * - A wrong clock in this process: only the store's clock decides, and the timer is set from the store's answer.
 * - A process that is stopped in the middle of a step: the store does not wait for it, and other instances go on.
 * - A schedule that cannot be planned here: it is left to other instances for a minute, and the rest of its batch is
 *   recorded.
 */
import type { Clock } from '../../core/clock.js'
import { SOON_MS } from '../../core/connection/hint.js'
import { errorRecord } from '../../core/errors.js'
import type { Logger } from '../../core/logger.js'
import { plan } from '../../core/schedules/plan.js'
import type { AdvanceResult, Planner, Store } from '../../core/store.js'
import type { Events } from '../events.js'
import { BURST_MS, type BurstPriority } from '../runs/burst-priority.js'
import { LeadTime } from './lead-time.js'

export interface TickerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly events: Events
  readonly log: Logger
  readonly batch: number
  readonly lookaheadMs: number
  readonly pollMs: number
  readonly burst: BurstPriority
  /** Called when runs were recorded. */
  readonly onRecorded: () => void
}

export function ticker(options: TickerOptions): () => Promise<number> {
  const { store, clock, events, batch, lookaheadMs, pollMs, burst, onRecorded } = options
  const planSafely = planner(options.log)
  const lead = new LeadTime(lookaheadMs)
  // With a lead shorter than a burst, a recording that waited for the burst would make its ticks late.
  const mayWait = lead.ms > BURST_MS
  return async function recordTicks() {
    if (mayWait) await burst.over()
    const sentAt = clock.monotonic()
    const result = await store.schedules.advance({ limit: batch, lookaheadMs, plan: planSafely })
    const isAll = result.schedules < batch
    lead.observe(clock.monotonic() - sentAt, result.schedules, isAll)
    if (result.recorded > 0 || result.skipped > 0) {
      events.emit('ticks:recorded', { recorded: result.recorded, skipped: result.skipped })
      onRecorded()
    }
    if (result.damage !== undefined) throw result.damage
    return isAll ? Math.min(pollMs, SOON_MS / 2, untilDue(result, lookaheadMs, lead.ms)) : 0
  }
}

/** A schedule that cannot be planned here is left to other instances for this long. Their zone data may be newer. */
const UNPLANNABLE_MS = 60_000

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

/**
 * How soon to ask again for due schedules that another instance has locked. That instance may be stopped or crash
 * before it records them.
 */
const LOCKED_MS = 20

function untilDue({ now, nextDueAt, schedules }: AdvanceResult, lookaheadMs: number, leadMs: number): number {
  if (nextDueAt === undefined) return Number.POSITIVE_INFINITY
  const isLocked = schedules === 0 && nextDueAt <= now + lookaheadMs
  return Math.max(nextDueAt - leadMs - now, isLocked ? LOCKED_MS : 1)
}
