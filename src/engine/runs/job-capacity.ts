import type { Capacity } from '../../core/store.js'
import type { JobDefinition } from '../definitions.js'
import type { ClaimLimits } from './attempts.js'
import type { ClaimPace } from './claim-pace.js'
import type { Slots } from './slots.js'

export interface JobCapacityOptions {
  readonly jobs: ReadonlyMap<string, JobDefinition>
  /** Which of the jobs the dispatcher starts. */
  readonly starts: (job: JobDefinition) => boolean
  /** How many attempts the dispatcher runs at a time, if the slots allow it. */
  readonly concurrency: number
  readonly slots: Slots
  readonly pace: ClaimPace
  /** Called when a slot is freed that a run may be waiting for. */
  readonly onFree: () => void
}

/**
 * How many more runs of each job a dispatcher can begin: its concurrency, the slots of the instance and the concurrency of
 * each job, less what runs and what claims in flight may still bring.
 */
export class JobCapacity {
  readonly #options: JobCapacityOptions
  /** Attempts of each job, and those that claims in flight may bring. */
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

  /** What the next claim may bring; undefined when nothing can begin. */
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

  /** Runs `claim` with what it may bring set aside: two claims in flight never bring more than can begin. */
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

  /** A job whose claim was full may have more runs: the dispatcher wakes when a slot is freed. */
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
