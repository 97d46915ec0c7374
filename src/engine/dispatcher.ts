/**
 * The dispatcher starts runs of jobs: it claims as many as can begin at once, never more, so that no claimed run waits in
 * the memory of a process that others cannot see into.
 *
 * - Crash before the claim: nothing happened. Crash after it: the beat stops, and the sweepers of others take over.
 * - A claim whose reply was lost, or came too late: `attempts.ts`.
 * - Raced by another: the store gives each run to one of us.
 */
import { errorRecord } from '../core/errors.js'
import { jitterMs } from '../core/jitter.js'
import type { Logger } from '../core/logger.js'
import type { Outcome } from '../core/run.js'
import type { Capacity, ClaimResult, Store } from '../core/store.js'
import type { Attempt } from './attempt.js'
import { type Attempts, ClaimSize, type ClaimWish, untilReady } from './attempts.js'
import type { Rush } from './rush.js'
import type { JobDefinition } from './work.js'
import { runAttempt } from './worker.js'

export interface DispatcherOptions {
  readonly store: Store
  readonly log: Logger
  readonly attempts: Attempts
  readonly rush: Rush
  readonly jobs: ReadonlyMap<string, JobDefinition>
  readonly concurrency: number
  /** How many runs one claim takes at the most. */
  readonly batch: number
  readonly pollMs: number
  /** Told when a slot becomes free. */
  readonly onFree: () => void
}

/** How uneven polls are. Who of many polled first is first at the next instant, and that is not to be always the same. */
const UNEVEN = 0.2

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #size: ClaimSize
  #running = 0
  /** Attempts of each job, for its own limit. */
  readonly #busy = new Map<string, number>()
  #closed = false
  #round = 0

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#size = new ClaimSize(options.batch)
  }

  /** One step of the loop. */
  async startRuns(): Promise<number> {
    const { attempts, rush, concurrency, pollMs } = this.#options
    let limit = 0
    const result = await attempts.claim(
      () => {
        const wish = this.#wish()
        limit = wish?.limit ?? 0
        return wish
      },
      (attempt) => this.#begin(attempt),
    )
    if (result === undefined) return pollMs
    const isFull = result.runs.length >= limit
    this.#size.took(isFull)
    if (!isFull || this.#closed) rush.end()
    else if (this.#running < concurrency) rush.begin()
    else rush.giveWay()
    return isFull ? 0 : this.#pause(result)
  }

  /** On time for what is known to come. Else at the next poll, each time a little differently from other instances. */
  #pause(result: ClaimResult): number {
    const { attempts, pollMs } = this.#options
    this.#round += 1
    return Math.min(untilReady(result), pollMs - jitterMs(pollMs * UNEVEN, attempts.instance, this.#round))
  }

  /** Claims no more. */
  close(): void {
    this.#closed = true
    this.#options.rush.end()
  }

  #wish(): ClaimWish | undefined {
    const limit = Math.min(this.#options.concurrency - this.#running, this.#size.most)
    if (limit <= 0 || this.#closed) return undefined
    const jobs: Capacity[] = []
    for (const [name, { concurrency }] of this.#options.jobs) {
      const free = Math.min(limit, concurrency - (this.#busy.get(name) ?? 0))
      if (free > 0) jobs.push({ name, limit: free })
    }
    return jobs.length === 0 ? undefined : { limit, jobs, sinks: [] }
  }

  /** Only what this instance offered to run can be among them. */
  #begin(attempt: Attempt): void {
    const { target } = attempt.run
    if (!('job' in target)) return
    this.#count(target.job, 1)
    this.#runJob(attempt, this.#options.jobs.get(target.job) as JobDefinition)
  }

  #runJob(attempt: Attempt, job: JobDefinition): void {
    const { store, log, attempts, onFree } = this.#options
    const free = () => {
      this.#count(job.name, -1)
      onFree()
    }
    const ended = runAttempt(attempt, job, store.runs, log)
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
