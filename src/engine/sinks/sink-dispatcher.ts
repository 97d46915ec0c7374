/**
 * Starts the runs that go to sinks. It claims as many messages as can be sent at once and no more, so that messages
 * wait in the store. Messages have a dispatcher of their own and take no slots of handlers: an unreachable broker must
 * not hold up jobs, and long jobs must not hold up messages.
 */
import type { Clock } from '../../core/clock.js'
import type { Logger } from '../../core/logger.js'
import type { Capacity, Store } from '../../core/store.js'
import type { SinkDefinition } from '../definitions.js'
import type { Events } from '../events.js'
import type { Attempt } from '../runs/attempt.js'
import type { Attempts, ClaimLimits } from '../runs/attempts.js'
import { ClaimSize, untilReady } from '../runs/claim-size.js'
import { SinkHealth, type SinkOutage } from './sink-health.js'
import { SinkLane } from './sink-lane.js'

export interface SinkDispatcherOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
  readonly attempts: Attempts
  readonly sinks: ReadonlyMap<string, SinkDefinition>
  /** Distinguishes events of this store from those of other stores. It is known before the first claim. */
  readonly storeIdentity: () => string
  readonly batch: number
  readonly pollMs: number
  /** Whether the lease of this instance certainly holds. */
  readonly isTrusted: () => boolean
  readonly onFree: () => void
}

export class SinkDispatcher {
  readonly #options: SinkDispatcherOptions
  readonly #lanes = new Map<string, SinkLane>()
  readonly #size: ClaimSize
  /** How many messages of each sink the last claim brought. */
  readonly #begun = new Map<string, number>()
  #closed = false

  constructor(options: SinkDispatcherOptions) {
    this.#options = options
    this.#size = new ClaimSize(options.batch)
    const { store, clock, log, events, attempts, storeIdentity, isTrusted, onFree } = options
    for (const [name, definition] of options.sinks) {
      const health = new SinkHealth({ definition, clock, log, events })
      const lane = { store, definition, clock, log, attempts, health, storeIdentity, isTrusted, onFree }
      this.#lanes.set(name, new SinkLane(lane))
    }
  }

  get outages(): readonly SinkOutage[] {
    return [...this.#lanes.values()].flatMap(({ outage }) => (outage === undefined ? [] : [outage]))
  }

  open(): void {
    for (const lane of this.#lanes.values()) lane.open()
  }

  async startRuns(): Promise<number> {
    const { clock, attempts, pollMs } = this.#options
    const sentAt = clock.monotonic()
    const limits = this.#limits()
    const result = limits === undefined ? undefined : await attempts.claim(limits, (attempt) => this.#begin(attempt))
    for (const lane of this.#lanes.values()) lane.gathered()
    const delayMs = Math.min(pollMs, this.#shortestPause())
    if (result === undefined || limits === undefined) return delayMs
    const isFull = this.#mayBeMore(limits)
    this.#size.took(result.runs.length, isFull)
    return isFull ? 0 : Math.min(delayMs, untilReady(result, clock.monotonic() - sentAt))
  }

  /** Whether a sink got as many messages as it had room for. The store may then have more for it. */
  #mayBeMore({ sinks }: ClaimLimits): boolean {
    let isFull = false
    for (const { name, limit } of sinks) {
      if ((this.#begun.get(name) ?? 0) < limit) continue
      isFull = true
      this.#lanes.get(name)?.wantMore()
    }
    return isFull
  }

  close(): void {
    this.#closed = true
    for (const lane of this.#lanes.values()) lane.close()
  }

  /** Closes the sinks, once nothing is in flight. */
  async end(): Promise<void> {
    await Promise.allSettled([...this.#lanes.values()].map((lane) => lane.end()))
  }

  /** Gives each sink its own share of a claim, however many messages wait for the other sinks. */
  #limits(): ClaimLimits | undefined {
    if (this.#closed) return undefined
    this.#begun.clear()
    const { most } = this.#size
    const sinks: Capacity[] = []
    let limit = 0
    for (const [name, lane] of this.#lanes) {
      const free = Math.min(lane.free, most)
      if (free <= 0) {
        lane.wantMore()
        continue
      }
      sinks.push({ name, limit: free })
      limit += free
    }
    return limit === 0 ? undefined : { limit, jobs: [], sinks }
  }

  #begin(attempt: Attempt): void {
    const { target } = attempt.run
    if (!('sink' in target)) return
    this.#begun.set(target.sink, (this.#begun.get(target.sink) ?? 0) + 1)
    this.#lanes.get(target.sink)?.add(attempt)
  }

  #shortestPause(): number {
    let shortest = Number.POSITIVE_INFINITY
    for (const { pauseMs } of this.#lanes.values()) if (pauseMs > 0) shortest = Math.min(shortest, Math.ceil(pauseMs))
    return shortest
  }
}
