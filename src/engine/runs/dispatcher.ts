/**
 * The dispatcher starts runs of jobs. It claims as many as can begin at once and no more: a claimed run never waits in
 * the memory of a process, where other instances cannot see it.
 *
 * Handlers of the main thread and handlers in threads have a dispatcher each, because a claim has one limit: the free
 * slots, or the free threads. Both share the slots of the instance.
 *
 * What each step survives:
 * - A crash before the claim: nothing happened. After it: the beat stops, and other instances take the runs over.
 * - A claim whose reply is lost, or comes too late: see `attempts.ts`.
 * - Two instances that claim at the same time: the store gives each run to one of them.
 * - Handlers that block the event loop: claims take few runs of their jobs (`claim-pace.ts`).
 * - More due runs than one claim takes: `LANES` claims are in flight, and starting comes before settling and recording
 *   (`burst-priority.ts`).
 */
import type { Clock } from '../../core/clock.js'
import { errorRecord } from '../../core/errors.js'
import type { Outcome } from '../../core/runs/run.js'
import { jitterMs } from '../../core/schedules/jitter.js'
import type { ClaimResult, Store } from '../../core/store.js'
import type { JobDefinition } from '../definitions.js'
import type { Attempt } from './attempt.js'
import type { Attempts, ClaimLimits } from './attempts.js'
import type { BurstPriority } from './burst-priority.js'
import { ClaimSize, untilReady } from './claim-size.js'
import { JobCapacity, type JobCapacityOptions } from './job-capacity.js'
import { type AttemptContext, runAttempt } from './worker.js'

export interface DispatcherOptions extends AttemptContext, JobCapacityOptions {
  readonly store: Store
  readonly clock: Clock
  readonly attempts: Attempts
  readonly burst: BurstPriority
  readonly batch: number
  readonly pollMs: number
  /** Called before a handler starts that is not known to be quick, so it may block the event loop. */
  readonly onMayBlock: () => void
}

/** Poll intervals vary by this share, so that the same instance does not always poll first. */
const POLL_JITTER = 0.2
/** How early a timer may fire. */
const EARLY_MS = 2
/** Claims in flight during a burst: while this process reads one answer, the store works on the other claim. */
const LANES = 2

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #size: ClaimSize
  readonly #capacity: JobCapacity
  /** When the next run is expected to be ready, by the monotonic clock. */
  #expectedAt = Number.POSITIVE_INFINITY
  #closed = false
  #round = 0

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#size = new ClaimSize(options.batch)
    this.#capacity = new JobCapacity(options)
  }

  get running(): number {
    return this.#capacity.running
  }

  /** Stops claiming. */
  close(): void {
    this.#closed = true
    this.#options.burst.end()
  }

  /** One step of the loop. The first claim of a burst is alone, because a store answers one claim sooner than two. */
  async startRuns(): Promise<number> {
    const { clock, burst, slots, onFree } = this.#options
    slots.unwant(onFree)
    const isBurst = this.#size.isMuch && (this.#size.isFull || clock.monotonic() >= this.#expectedAt - EARLY_MS)
    if (isBurst && this.#limits() !== undefined) burst.begin()
    const pauseMs = await this.#claimOnce()
    if (!isBurst || pauseMs > 0) return pauseMs
    const lanes = await Promise.allSettled(Array.from({ length: LANES }, () => this.#claimAll()))
    for (const lane of lanes) if (lane.status === 'rejected') throw lane.reason
    // Two claims at the same time may leave some ready runs unclaimed, which the next step finds.
    return 0
  }

  async #claimAll(): Promise<void> {
    while ((await this.#claimOnce()) === 0);
  }

  /** Returns how long to sleep before the next claim. */
  async #claimOnce(): Promise<number> {
    const { clock, burst, pollMs } = this.#options
    const limits = this.#limits()
    if (limits === undefined) {
      // No slot is free, and only settling frees one.
      if (!this.#capacity.isReserved) burst.giveWay()
      return pollMs
    }
    const sentAt = clock.monotonic()
    const result = await this.#claim(limits)
    const isFull = result.runs.length >= limits.limit
    this.#size.took(result.runs.length, isFull)
    if (isFull) {
      if (this.#capacity.isFull) burst.giveWay()
      return 0
    }
    if (!this.#capacity.isReserved) burst.end()
    this.#capacity.wakeForMore(limits)
    return this.#pause(result, sentAt)
  }

  #limits(): ClaimLimits | undefined {
    return this.#closed ? undefined : this.#capacity.limits(this.#size.most)
  }

  async #claim(limits: ClaimLimits): Promise<ClaimResult> {
    const { attempts, clock, pace } = this.#options
    let startedAt = 0
    let begun = 0
    const begin = (attempt: Attempt) => {
      if (begun === 0) startedAt = clock.monotonic()
      begun += 1
      this.#begin(attempt)
      this.#noticeBurst(begun, limits)
    }
    pace.asked(limits.jobs)
    let runs: ClaimResult['runs'] = []
    try {
      const result = await this.#capacity.reserve(limits, () => attempts.claim(limits, begin))
      if (begun > 0) runs = result.runs
      return result
    } finally {
      pace.answered(limits.jobs, runs, startedAt)
    }
  }

  /**
   * A burst begins when the last run of a full claim starts. Any later, the settler would already write the outcomes of
   * runs that have ended.
   */
  #noticeBurst(begun: number, { limit }: ClaimLimits): void {
    if (begun === limit && !this.#capacity.isFull && !this.#closed) this.#options.burst.begin()
  }

  /** How long to sleep: until the next run is ready, but no longer than until the next poll. */
  #pause(result: ClaimResult, sentAt: number): number {
    const { attempts, clock, pollMs } = this.#options
    this.#round += 1
    const answeredAt = clock.monotonic()
    const readyMs = untilReady(result, answeredAt - sentAt)
    this.#expectedAt = answeredAt + readyMs
    return Math.min(readyMs, pollMs - jitterMs(pollMs * POLL_JITTER, attempts.instance, this.#round))
  }

  #begin(attempt: Attempt): void {
    const { target } = attempt.run
    const { jobs, pace, onMayBlock, attempts } = this.#options
    if (!('job' in target)) return
    const job = jobs.get(target.job) as JobDefinition
    this.#capacity.begin(job.name)
    // The handler may block the loop at once, so warnings about a block must know its name before it starts.
    if (!pace.isUnlimited(job.name)) onMayBlock()
    void runAttempt(attempt, job, this.#options)
      .catch(unforeseen)
      .then((outcome) => attempts.settle(attempt, outcome, () => this.#capacity.end(job.name)))
  }
}

/** An error in Belfry itself fails the run, which would otherwise stay `running`. */
function unforeseen(error: unknown): Outcome {
  return { kind: 'failed', error: errorRecord(error) }
}
