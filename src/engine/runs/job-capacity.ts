import type { Capacity } from '../../core/store.js'
import type { JobDefinition } from '../definitions.js'
import type { ClaimLimits } from './attempts.js'
import type { ClaimPace } from './claim-pace.js'
import type { Slots } from './slots.js'

export interface JobCapacityOptions {
  readonly jobs: ReadonlyMap<string, JobDefinition>
  /** Whether the dispatcher starts runs of this job. */
  readonly starts: (job: JobDefinition) => boolean
  /** How many attempts the dispatcher runs at a time, if the slots allow it. */
  readonly concurrency: number
  readonly slots: Slots
  readonly pace: ClaimPace
  /** Called when a slot is freed that a run may be waiting for. */
  readonly onFree: () => void
}

/**
 * Counts how many more runs a dispatcher can begin. Its own concurrency, the free slots of the instance and the
 * concurrency of each job limit the number. Attempts that run count against these limits, and so does the most that the
 * claims in flight may bring.
 */
export class JobCapacity {
  readonly #options: JobCapacityOptions
  /** Attempts of each job that run, or that claims in flight may bring. */
  readonly #taken = new Map<string, number>()
  #running = 0
  #reserved = 0

  constructor(options: JobCapacityOptions) {
    this.#options = options
  }

  get running(): number {
    return this.#running
  }

  /** Whether claims are in flight. */
  get isReserved(): boolean {
    return this.#reserved > 0
  }

  get isFull(): boolean {
    return this.#running >= this.#options.concurrency
  }

  /** The limits of the next claim; undefined when no run can begin. */
  limits(most: number): ClaimLimits | undefined {
    const { concurrency, slots, starts, pace } = this.#options
    const limit = Math.min(concurrency - this.#running - this.#reserved, slots.free, most)
    const jobs: Capacity[] = []
    for (const [name, job] of this.#options.jobs) {
      if (!starts(job)) continue
      const free = Math.min(limit, this.#freeOf(name), pace.most(name))
      if (free > 0) jobs.push({ name, limit: free })
      else this.#wakeWhenFree()
    }
    return jobs.length === 0 ? undefined : { limit, jobs, sinks: [] }
  }

  /** Reserves the limits while `claim` is in flight, so that two claims never bring more runs than can begin. */
  async reserve<T>(limits: ClaimLimits, claim: () => Promise<T>): Promise<T> {
    const { slots, onFree } = this.#options
    this.#reserved += limits.limit
    slots.take(limits.limit)
    for (const { name, limit } of limits.jobs) this.#take(name, limit)
    try {
      return await claim()
    } finally {
      this.#reserved -= limits.limit
      slots.give(limits.limit, onFree)
      for (const { name, limit } of limits.jobs) this.#take(name, -limit)
    }
  }

  /** A job that filled its limit may have more runs, so the dispatcher wakes when a slot is freed. */
  wakeForMore({ jobs }: ClaimLimits): void {
    if (jobs.some(({ name }) => this.#freeOf(name) <= 0)) this.#wakeWhenFree()
  }

  begin(job: string): void {
    this.#running += 1
    this.#take(job, 1)
    this.#options.slots.take(1)
  }

  end(job: string): void {
    this.#running -= 1
    this.#take(job, -1)
    this.#options.slots.give(1)
  }

  #wakeWhenFree(): void {
    this.#options.slots.want(this.#options.onFree)
  }

  #freeOf(job: string): number {
    return (this.#options.jobs.get(job)?.concurrency ?? 0) - (this.#taken.get(job) ?? 0)
  }

  #take(job: string, count: number): void {
    this.#taken.set(job, (this.#taken.get(job) ?? 0) + count)
  }
}
