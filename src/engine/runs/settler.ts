/**
 * The settler writes down how attempts ended, many at a time: whatever ends while one write is under way goes into the
 * next. It never gives up on an outcome while the instance lives: until it is written, the attempt stays in the beat's
 * list, so nobody takes the finished work over; and if the instance is declared dead meanwhile, the write comes back
 * `stale`, which is right, because then somebody did.
 */
import { type Clock, sleep } from '../../core/clock.js'
import { desynchronise } from '../../core/retry.js'
import type { Settlement, SettleResult, Store } from '../../core/store.js'
import type { Health } from '../health.js'
import type { Rush } from './burst-priority.js'

interface Pending {
  readonly settlement: Settlement
  readonly done: (result: SettleResult) => void
}

const PART = 'settler'
const BACKOFF_MS = 200

export class Settler {
  readonly #store: Store
  readonly #clock: Clock
  readonly #health: Health
  readonly #batch: number
  readonly #rush: Rush
  #queue: Pending[] = []
  #flushing: Promise<void> | undefined
  readonly #abandon = new AbortController()

  constructor(store: Store, clock: Clock, health: Health, batch: number, rush: Rush) {
    this.#store = store
    this.#clock = clock
    this.#health = health
    this.#batch = batch
    this.#rush = rush
  }

  /** Calls back when the outcome is written, or refused. */
  settle(settlement: Settlement, done: (result: SettleResult) => void): void {
    this.#queue.push({ settlement, done })
    this.#flushing ??= this.#flush()
  }

  /** Resolves when everything handed in so far is written, or gives up when the signal fires. */
  async drain(signal: AbortSignal): Promise<void> {
    const abandon = () => this.#abandon.abort()
    signal.addEventListener('abort', abandon)
    if (signal.aborted) abandon()
    await this.#flushing
    signal.removeEventListener('abort', abandon)
  }

  async #flush(): Promise<void> {
    // Attempts that end in the same turn join the same write.
    await Promise.resolve()
    for (let failures = 0; this.#queue.length > 0 && !this.#abandon.signal.aborted; ) {
      await this.#rush.over()
      const batch = this.#queue.slice(0, this.#batch)
      try {
        const results = await this.#store.runs.settle(batch.map(({ settlement }) => settlement))
        this.#queue = this.#queue.slice(batch.length)
        for (const [at, { done }] of batch.entries()) done(results[at] ?? 'stale')
        failures = 0
        this.#health.succeeded(PART)
      } catch (error) {
        failures += 1
        this.#health.failed(PART, error)
        await sleep(
          this.#clock,
          desynchronise(BACKOFF_MS * Math.min(failures, 10), PART, failures),
          this.#abandon.signal,
        )
      }
    }
    for (const { done } of this.#queue.splice(0)) done('stale')
    this.#flushing = undefined
  }
}
