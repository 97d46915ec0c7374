/**
 * Turns what a sink answered into outcomes of runs, and writes them.
 *
 * - A call that got nothing through decides nothing: its messages wait until the sink's health is certain, then count as
 *   failed (the sink is reachable) or are given back uncharged (it is down).
 * - A receiver that wants no more messages (HTTP 410) has its schedule paused before the run is settled: a crash in between
 *   repeats the delivery, which is refused again and pauses again.
 * - A retry of an ordered sink keeps its key until it is due (`ordered-retries.ts`).
 */

import { canonicalJson, type Json } from '../../core/checks/json.js'
import type { Clock } from '../../core/clock.js'
import type { Logger } from '../../core/logger.js'
import type { Outcome, Target } from '../../core/runs/run.js'
import type { Delivery } from '../../core/sink.js'
import type { ClaimedRun, ScheduleStore, Store } from '../../core/store.js'
import type { SinkDefinition } from '../definitions.js'
import type { Attempt } from '../runs/attempt.js'
import type { Attempts } from '../runs/attempts.js'
import { OrderedRetries } from './ordered-retries.js'
import type { Undecided, Unreached } from './sink-call.js'
import type { SinkHealth } from './sink-health.js'
import { noAnswer, outcomeOf } from './sink-outcome.js'
import { UndecidedMessages } from './undecided-messages.js'

export interface SinkSettlerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly definition: SinkDefinition
  readonly attempts: Attempts
  readonly health: SinkHealth
  /** Called for each message whose run is settled. */
  readonly onSettled: () => void
  /** Called when a message no longer takes room. */
  readonly onParked: () => void
}

/** How many messages may wait for their retry without taking room from others. */
const MAX_PARKED_RETRIES = 1_000

export class SinkSettler {
  readonly #options: SinkSettlerOptions
  readonly #retries: OrderedRetries
  readonly #undecided = new UndecidedMessages()
  #closed = false

  constructor(options: SinkSettlerOptions) {
    this.#options = options
    this.#retries = new OrderedRetries(options.definition, options.clock, (attempt, outcome) =>
      this.#write(attempt, outcome),
    )
  }

  /** Messages in flight that are not on their way to the sink, and take no room from others. */
  get parked(): number {
    return Math.min(this.#retries.size, MAX_PARKED_RETRIES) + this.#undecided.size
  }

  settle(attempt: Attempt, delivery: Delivery): void {
    if (delivery.delivered === true) this.#undecided.absolve(attempt)
    if (delivery.delivered !== true && delivery.pauseSchedule !== undefined && isOurs(attempt)) {
      void this.#pause(attempt, delivery, delivery.pauseSchedule)
    } else this.#finish(attempt, delivery)
  }

  /** The attempt was aborted before its message was sent. */
  settleUnsent(attempt: Attempt): void {
    attempt.end()
    this.#finish(attempt, noAnswer(this.#options.definition, attempt))
  }

  failed({ error, undecided }: Unreached, epoch: number): void {
    const { health } = this.#options
    if (health.state !== 'reachable' || !this.#undecided.areSuspects(undecided)) health.failed(error, epoch)
    this.#undecided.add(undecided)
  }

  /** Settles undecided messages as the sink's health says. False while it is in doubt. */
  decide(): boolean {
    const { state } = this.#options.health
    if (state === 'doubted' && !this.#closed) return false
    const messages = this.#undecided.takeAll()
    if (state === 'reachable') for (const { attempt, delivery } of messages) this.settle(attempt, delivery)
    else this.#release(messages)
    return true
  }

  close(): void {
    this.#closed = true
    this.#release(this.#undecided.takeAll())
    this.#retries.giveAllBack()
  }

  /** Gives messages back, due at once but behind all that are due already: the next message to be tried is another one. */
  #release(messages: readonly Undecided[]): void {
    this.#undecided.suspect(messages)
    for (const { attempt, delivery } of messages) {
      const outcome = outcomeOf(this.#options.definition, attempt, delivery)
      this.#write(attempt, isOurs(attempt) ? { kind: 'released' } : outcome)
    }
  }

  async #pause(attempt: Attempt, delivery: Delivery, note: string): Promise<void> {
    const { store, log } = this.#options
    try {
      await pauseScheduleOf(store.schedules, log, attempt.run, note)
      this.#finish(attempt, delivery)
    } catch (error) {
      this.#finish(attempt, { delivered: false, error })
    }
  }

  #finish(attempt: Attempt, delivery: Delivery): void {
    const { definition } = this.#options
    const outcome = outcomeOf(definition, attempt, delivery)
    const keepsKey = definition.ordered && attempt.run.key !== undefined && !this.#closed
    if (keepsKey && outcome?.kind === 'retry') {
      this.#retries.add(attempt, outcome)
      this.#options.onParked()
    } else this.#write(attempt, outcome)
  }

  #write(attempt: Attempt, outcome: Outcome | undefined): void {
    this.#options.attempts.settle(attempt, outcome, this.#options.onSettled)
  }
}

function isOurs({ reason }: Attempt): boolean {
  return reason === undefined || reason === 'timeout'
}

/** A schedule whose target has changed since is left alone: the answer of its old receiver no longer concerns it. */
async function pauseScheduleOf(
  schedules: Pick<ScheduleStore, 'get' | 'pause'>,
  log: Logger,
  run: ClaimedRun,
  note: string,
): Promise<void> {
  if (run.schedule === undefined) return
  const schedule = await schedules.get(run.schedule)
  if (schedule === undefined || schedule.pausedAt !== undefined || schedule.finishedAt !== undefined) return
  if (targetText(schedule.definition.target) !== targetText(run.target)) return
  await schedules.pause(run.schedule, note)
  log.warn({ schedule: run.schedule, run: run.id }, `paused the schedule: ${note}`)
}

function targetText(target: Target): string {
  return canonicalJson(target as unknown as Json)
}
