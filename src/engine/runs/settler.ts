/**
 * The settler writes outcomes of attempts, many in one transaction: attempts that end during one write join the next.
 *
 * The settler retries a failed write until the instance stops. Until the outcome is written, the beat lists the
 * attempt, so no other instance takes the finished work over. If the instance is declared dead meanwhile, the write
 * returns `stale`: another instance has the run.
 */
import { type Clock, sleep } from '../../core/clock.js'
import { desynchronise } from '../../core/runs/retry-policy.js'
import type { Settlement, SettleResult, Store } from '../../core/store.js'
import type { Health } from '../health.js'
import type { BurstPriority } from './burst-priority.js'

export interface SettlerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly health: Health
  readonly batch: number
  readonly burst: BurstPriority
}

interface Pending {
  readonly settlement: Settlement
  readonly done: (result: SettleResult) => void
}

const NAME = 'settler'
const BACKOFF_MS = 200

export class Settler {
  readonly #options: SettlerOptions
  #queue: Pending[] = []
  #flushing: Promise<void> | undefined
  readonly #abandon = new AbortController()

  constructor(options: SettlerOptions) {
    this.#options = options
  }

  /** Calls `done` when the outcome is written, or refused as stale. */
  settle(settlement: Settlement, done: (result: SettleResult) => void): void {
    this.#queue.push({ settlement, done })
    this.#flushing ??= this.#flush()
  }

  /** Resolves when all queued outcomes are written. When the signal fires, the rest counts as stale. */
  async drain(signal: AbortSignal): Promise<void> {
    const abandon = () => this.#abandon.abort()
    signal.addEventListener('abort', abandon)
    if (signal.aborted) abandon()
    await this.#flushing
    signal.removeEventListener('abort', abandon)
  }

  async #flush(): Promise<void> {
    const { clock, health, burst } = this.#options
    // Attempts that end in the same turn of the event loop join the same write.
    await Promise.resolve()
    for (let failures = 0; this.#queue.length > 0 && !this.#abandon.signal.aborted; ) {
      await burst.over()
      try {
        await this.#write()
        failures = 0
        health.succeeded(NAME)
      } catch (error) {
        failures += 1
        health.failed(NAME, error)
        const backoffMs = desynchronise(BACKOFF_MS * Math.min(failures, 10), NAME, failures)
        await sleep(clock, backoffMs, this.#abandon.signal)
      }
    }
    for (const { done } of this.#queue.splice(0)) done('stale')
    this.#flushing = undefined
  }

  async #write(): Promise<void> {
    const batch = this.#queue.slice(0, this.#options.batch)
    const results = await this.#options.store.runs.settle(batch.map(({ settlement }) => settlement))
    this.#queue = this.#queue.slice(batch.length)
    for (const [at, { done }] of batch.entries()) done(results[at] ?? 'stale')
  }
}
