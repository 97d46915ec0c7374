/**
 * The dispatcher starts runs of jobs: it claims as many as can begin at once, never more, so that no claimed run waits in
 * the memory of a process that others cannot see into.
 *
 * Handlers that keep the event loop busy are taken few at a time: `pace.ts`.
 *
 * Where more is due than one claim takes, or was the last time, several claims are under way, each for room of its own.
 *
 * Handlers of the main thread and handlers in threads have a dispatcher each, because what a claim may bring has one limit:
 * the free slots, or the free threads. They share the slots of the instance.
 *
 * - Crash before the claim: nothing happened. Crash after it: the beat stops, and the sweepers of others take over.
 * - A claim whose reply was lost, or came too late: `attempts.ts`.
 * - Raced by another: the store gives each run to one of us.
 */
import type { Clock } from '../../core/clock.js'
import { errorRecord } from '../../core/errors.js'
import { jitterMs } from '../../core/jitter.js'
import type { Outcome } from '../../core/run.js'
import type { Capacity, ClaimResult, Store } from '../../core/store.js'
import type { JobDefinition } from '../definitions.js'
import type { Attempt } from './attempt.js'
import type { Attempts, ClaimWish } from './attempts.js'
import type { Rush } from './burst-priority.js'
import type { ClaimPace } from './claim-pace.js'
import { ClaimSize, untilReady } from './claim-size.js'
import type { Slots } from './slots.js'
import { type AttemptGround, runAttempt } from './worker.js'

export interface DispatcherOptions extends AttemptGround {
  readonly store: Store
  readonly clock: Clock
  readonly attempts: Attempts
  readonly rush: Rush
  readonly jobs: ReadonlyMap<string, JobDefinition>
  /** Which of the jobs it starts. */
  readonly starts: (job: JobDefinition) => boolean
  readonly slots: Slots
  /** How many attempts it runs at a time, if the slots allow it. */
  readonly concurrency: number
  /** How many runs one claim takes at the most. */
  readonly batch: number
  readonly pollMs: number
  /** Called when a slot becomes free that something may wait for. */
  readonly onFree: () => void
  readonly pace: ClaimPace
  /** Called before a handler starts that may block the loop, for all that is known of its job. */
  readonly onUnknown: () => void
}

/** How uneven polls are. Who of many polled first is first at the next instant, and that is not to be always the same. */
const UNEVEN = 0.2

/** How much too early a timer may be. */
const EARLY_MS = 2

/** How many claims are under way where much is due: while the answer to one is read here, the store is at the other. */
const LANES = 2

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #size: ClaimSize
  #running = 0
  /** How many the claims that are under way may bring. */
  #asked = 0
  /** Attempts of each job, and those that claims may bring, for its own limit. */
  readonly #busy = new Map<string, number>()
  /** When the next run is known to be ready, on the monotonic clock. */
  #expectedAt = Number.POSITIVE_INFINITY
  #closed = false
  #round = 0

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#size = new ClaimSize(options.batch)
  }

  /** One step of the loop. The first claim is alone: the sooner it is answered, the sooner half of a wave has started. */
  async startRuns(): Promise<number> {
    const { clock, rush, slots, onFree } = this.#options
    slots.unwant(onFree)
    const isMuch = this.#size.isMuch && (this.#size.isFull || clock.monotonic() >= this.#expectedAt - EARLY_MS)
    if (isMuch && this.#wish() !== undefined) rush.begin()
    const pauseMs = await this.#claimOnce()
    if (!isMuch || pauseMs > 0) return pauseMs
    const lanes = await Promise.allSettled(Array.from({ length: LANES }, () => this.#claimOn()))
    for (const lane of lanes) if (lane.status === 'rejected') throw lane.reason
    // Claims that race each other may leave something between them: one that is alone finds it.
    return 0
  }

  /** Claims until there is no more, or no room for it. */
  async #claimOn(): Promise<void> {
    while ((await this.#claimOnce()) === 0);
  }

  /** Answers when to come again. */
  async #claimOnce(): Promise<number> {
    const { clock, rush, concurrency, pollMs } = this.#options
    const wish = this.#wish()
    if (wish === undefined) {
      // What has ended makes room.
      if (this.#asked === 0) rush.giveWay()
      return pollMs
    }
    const sentAt = clock.monotonic()
    let begun = 0
    const result = await this.#claim(wish, (attempt) => {
      this.#begin(attempt)
      begun += 1
      // Not later: what of it ends at once would be written down first.
      if (begun === wish.limit && this.#running < concurrency && !this.#closed) rush.begin()
    })
    const isFull = result.runs.length >= wish.limit
    this.#size.took(result.runs.length, isFull)
    if (isFull) {
      if (this.#running >= concurrency) rush.giveWay()
      return 0
    }
    if (this.#asked === 0) rush.end()
    // A job that has no more room may have more to run.
    for (const { name } of wish.jobs) if (this.#freeOf(name) <= 0) this.#wantRoom()
    return this.#pause(result, sentAt)
  }

  async #claim(wish: ClaimWish, begin: (attempt: Attempt) => void): Promise<ClaimResult> {
    const { attempts, clock } = this.#options
    let startedAt: number | undefined
    let begun: ClaimResult['runs'] = []
    this.#reserve(wish, 1)
    this.#options.pace.asked(wish.jobs)
    try {
      const result = await attempts.claim(wish, (attempt) => {
        startedAt ??= clock.monotonic()
        begin(attempt)
      })
      if (startedAt !== undefined) begun = result.runs
      return result
    } finally {
      this.#reserve(wish, -1)
      this.#options.pace.answered(wish.jobs, begun, startedAt ?? 0)
    }
  }

  /** On time for what is known to come. Else at the next poll, each time a little differently from other instances. */
  #pause(result: ClaimResult, sentAt: number): number {
    const { attempts, clock, pollMs } = this.#options
    this.#round += 1
    const answeredAt = clock.monotonic()
    const readyMs = untilReady(result, answeredAt - sentAt)
    this.#expectedAt = answeredAt + readyMs
    return Math.min(readyMs, pollMs - jitterMs(pollMs * UNEVEN, attempts.instance, this.#round))
  }

  /** How many of its attempts there are now. */
  get running(): number {
    return this.#running
  }

  /** Claims no more. */
  close(): void {
    this.#closed = true
    this.#options.rush.end()
  }

  #wish(): ClaimWish | undefined {
    const { concurrency, slots, starts, pace } = this.#options
    const limit = Math.min(concurrency - this.#running - this.#asked, slots.free, this.#size.most)
    if (this.#closed) return undefined
    const jobs: Capacity[] = []
    for (const [name, job] of this.#options.jobs) {
      if (!starts(job)) continue
      const free = Math.min(limit, this.#freeOf(name), pace.most(name))
      if (free > 0) jobs.push({ name, limit: free })
      else this.#wantRoom()
    }
    return jobs.length === 0 ? undefined : { limit, jobs, sinks: [] }
  }

  /** There may be runs that only lack room. */
  #wantRoom(): void {
    this.#options.slots.want(this.#options.onFree)
  }

  #freeOf(job: string): number {
    return (this.#options.jobs.get(job)?.concurrency ?? 0) - (this.#busy.get(job) ?? 0)
  }

  /** What one claim may bring, another must not ask for. */
  #reserve({ limit, jobs }: ClaimWish, sign: 1 | -1): void {
    const { slots, onFree } = this.#options
    this.#asked += sign * limit
    if (sign === 1) slots.take(limit)
    else slots.give(limit, onFree)
    for (const job of jobs) this.#busy.set(job.name, (this.#busy.get(job.name) ?? 0) + sign * job.limit)
  }

  /** Only what this instance offered to run can be among them. */
  #begin(attempt: Attempt): void {
    const { target } = attempt.run
    if (!('job' in target)) return
    this.#count(target.job, 1)
    this.#options.slots.take(1)
    // It may block the loop at once: whoever warns of that has to know its name by then.
    if (!this.#options.pace.isLight(target.job)) this.#options.onUnknown()
    this.#runJob(attempt, this.#options.jobs.get(target.job) as JobDefinition)
  }

  #runJob(attempt: Attempt, job: JobDefinition): void {
    const { attempts, slots } = this.#options
    const free = () => {
      this.#count(job.name, -1)
      slots.give(1)
    }
    const ended = runAttempt(attempt, job, this.#options)
    const settle = (outcome: Outcome | undefined) => attempts.settle(attempt, outcome, free)
    if (ended instanceof Promise) void ended.catch(unforeseen).then(settle)
    else settle(ended)
  }

  #count(job: string, change: number): void {
    this.#running += change
    this.#busy.set(job, (this.#busy.get(job) ?? 0) + change)
  }
}

/** Nothing that a handler does should come to this; if something does, the run ends instead of hanging. */
function unforeseen(error: unknown): Outcome {
  return { kind: 'failed', error: errorRecord(error) }
}
