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
import { plan } from '../core/plan.js'
import type { AdvanceResult, Store } from '../core/store.js'
import type { Events } from './events.js'

export interface TickerOptions {
  readonly store: Store
  readonly events: Events
  readonly batch: number
  readonly lookaheadMs: number
  readonly pollMs: number
  /** Told when runs were recorded. */
  readonly onRecorded: () => void
}

export function ticker({
  store,
  events,
  batch,
  lookaheadMs,
  pollMs,
  onRecorded,
}: TickerOptions): () => Promise<number> {
  return async function recordTicks() {
    const result = await store.schedules.advance({ limit: batch, lookaheadMs, plan })
    if (result.recorded > 0 || result.skipped > 0) {
      events.emit('ticks:recorded', { recorded: result.recorded, skipped: result.skipped })
      onRecorded()
    }
    if (result.schedules >= batch) return 0
    return Math.min(pollMs, untilDue(result, lookaheadMs))
  }
}

function untilDue({ now, nextDueAt }: AdvanceResult, lookaheadMs: number): number {
  return nextDueAt === undefined ? Number.POSITIVE_INFINITY : Math.max(nextDueAt - lookaheadMs - now, 1)
}
