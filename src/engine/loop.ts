/**
 * A supervised loop: does one step after another, sleeping as long as each step says, until it is stopped. An error
 * never ends it: it backs off with jitter, and health says so once.
 */
import { type Clock, sleep } from '../core/clock.js'
import { desynchronise } from '../core/retry.js'
import type { Health } from './health.js'

export interface LoopOptions {
  readonly name: string
  readonly clock: Clock
  readonly health: Health
  /** Does the work, and answers how long to sleep before the next step. */
  readonly step: () => Promise<number>
}

const FIRST_BACKOFF_MS = 100
const MAX_BACKOFF_MS = 5_000

/** Without a reason, an abort makes an error with a stack each time. */
const STOPPED = 'stopped'

function asleepNoMore(): void {}

export class Loop {
  readonly #options: LoopOptions
  readonly #stop = new AbortController()
  /** Ends the sleep that is under way. */
  #rouse = asleepNoMore
  #wanted = false
  #failures = 0
  #ended: Promise<void> | undefined

  constructor(options: LoopOptions) {
    this.#options = options
  }

  start(): void {
    this.#ended ??= this.#run()
  }

  /** Ends the sleep; a step that is under way is followed by another at once. */
  wake(): void {
    this.#wanted = true
    this.#rouse()
  }

  /** Resolves when the step that is under way has ended. */
  async stop(): Promise<void> {
    this.#stop.abort(STOPPED)
    this.#rouse()
    await this.#ended
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#wanted = false
      const delayMs = await this.#step()
      if (!this.#wanted && delayMs > 0 && !this.#stop.signal.aborted) await this.#sleep(delayMs)
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
      // A wake-up must not turn a store that is down into a busy loop.
      await sleep(this.#options.clock, desynchronise(backoffMs, name, this.#failures), this.#stop.signal)
      return 0
    }
  }

  async #sleep(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(delayMs, resolve)
      this.#rouse = () => {
        this.#rouse = asleepNoMore
        cancel()
        resolve()
      }
    })
    this.#rouse = asleepNoMore
  }
}
