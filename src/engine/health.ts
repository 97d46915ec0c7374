import type { Clock } from '../core/clock.js'
import { BelfryError, errorRecord } from '../core/errors.js'
import type { Logger } from '../core/logger.js'
import type { Events } from './events.js'

/** From so many failures in a row on, a part counts as stuck. A server that restarts causes fewer. */
const STUCK = 3

/** A `BelfryError` whose code is not `STORE_…` is a mistake elsewhere, and an invalid store answers. */
function outageText(part: string, error: unknown): string {
  const own = error instanceof BelfryError && (!error.code.startsWith('STORE_') || error.code === 'STORE_INVALID')
  return own
    ? `the ${part} failed: ${error.message}; still trying`
    : 'store unreachable: nothing starts until it answers; still trying'
}

/** Reports a store outage once when it begins, however many loops notice it, and once when it is over. */
export class Health {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #events: Events
  /** How often each failing part has failed in a row. */
  readonly #failing = new Map<string, number>()
  #since = 0
  #failures = 0

  constructor(clock: Clock, log: Logger, events: Events) {
    this.#clock = clock
    this.#log = log
    this.#events = events
  }

  failed(part: string, error: unknown): void {
    this.#failures += 1
    if (this.#failing.size === 0) {
      this.#since = this.#clock.monotonic()
      this.#log.warn({ part, err: errorRecord(error) }, outageText(part, error))
      this.#events.emit('store:unreachable', { error })
    }
    this.#failing.set(part, (this.#failing.get(part) ?? 0) + 1)
  }

  succeeded(part: string): void {
    if (!this.#failing.delete(part) || this.#failing.size > 0) return
    const downMs = Math.round(this.#clock.monotonic() - this.#since)
    this.#log.info({ downMs, failures: this.#failures }, 'store answers again')
    this.#events.emit('store:recovered', { downMs })
    this.#failures = 0
  }

  /** The parts that have failed several times in a row. */
  get stuck(): readonly string[] {
    return [...this.#failing].filter(([, failures]) => failures >= STUCK).map(([part]) => part)
  }

  /** Forgets the failure of a part that has ended. */
  forget(part: string): void {
    this.#failing.delete(part)
  }
}
