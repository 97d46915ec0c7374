/**
 * A supervised loop runs one step after another until it is stopped. Each step returns how long to sleep before the
 * next. After an error the loop backs off with jitter and goes on, and `Health` reports the outage once.
 */
import { type Clock, sleep } from '../core/clock.js'
import { desynchronise } from '../core/runs/retry-policy.js'
import type { Health } from './health.js'

export interface LoopOptions {
  readonly name: string
  readonly clock: Clock
  readonly health: Health
  /** Does the work, and returns how long to sleep before the next step. */
  readonly step: () => Promise<number>
}

const FIRST_BACKOFF_MS = 100
const MAX_BACKOFF_MS = 5_000

/** Without a reason, each abort would create an error with a stack. */
const STOPPED = 'stopped'

function notAsleep(): void {}

export class Loop {
  readonly #options: LoopOptions
  readonly #stop = new AbortController()
  /** Ends the current sleep. */
  #endSleep = notAsleep
  /** Set by a wake-up during a step: the next step follows without a sleep. */
  #isWanted = false
  #failures = 0
  #ended: Promise<void> | undefined

  constructor(options: LoopOptions) {
    this.#options = options
  }

  start(): void {
    this.#ended ??= this.#run()
  }

  /** Ends the sleep. During a step, another step follows at once. */
  wake(): void {
    this.#isWanted = true
    this.#endSleep()
  }

  /** Resolves when the current step has ended. */
  async stop(): Promise<void> {
    this.#stop.abort(STOPPED)
    this.#endSleep()
    await this.#ended
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#isWanted = false
      const delayMs = await this.#step()
      if (!this.#isWanted && delayMs > 0 && !this.#stop.signal.aborted) await this.#sleep(delayMs)
    }
  }

  async #step(): Promise<number> {
    const { name, health, step } = this.#options
    try {
      const delayMs = await step()
      this.#failures = 0
      health.succeeded(name)
      return delayMs
    } catch (error) {
      this.#failures += 1
      health.failed(name, error)
      const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(this.#failures - 1, 10), MAX_BACKOFF_MS)
      // A wake-up does not shorten the backoff: it would make a busy loop while the store is down.
      await sleep(this.#options.clock, desynchronise(backoffMs, name, this.#failures), this.#stop.signal)
      return 0
    }
  }

  async #sleep(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(delayMs, resolve)
      this.#endSleep = () => {
        this.#endSleep = notAsleep
        cancel()
        resolve()
      }
    })
    this.#endSleep = notAsleep
  }
}
