/**
 * Converts a sink's answers to outcomes of runs, and writes them.
 *
 * - A call that did not reach the sink decides nothing: its messages wait until the sink's health is certain. If the
 *   sink is reachable, they count as failed. If it is down, they go back to the store, and no failure is counted.
 * - A receiver wants no more messages (HTTP 410): the schedule is paused before the run is settled. A crash in between
 *   repeats the delivery; the receiver refuses it again, and the schedule is paused again.
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
  /** Called when a message waits for its retry, and takes no room of others. */
  readonly onParked: () => void
}

/** The most messages that may wait for their retry without taking room of others. */
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

  /** Claimed messages that wait for a retry or for a decision. They take no room of others. */
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

  /** Settles undecided messages by the sink's health. Returns false while the health is in doubt. */
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

  /**
   * Gives messages back to the store, due at once but behind all that are due already. So the next message to be tried
   * is another one.
   */
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

/**
 * Pauses the run's schedule. A schedule that has another target by now is left alone: the answer came from its old receiver.
 */
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
