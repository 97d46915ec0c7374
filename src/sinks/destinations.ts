/**
 * Decides whether a refusal without a reason means a broker outage or one bad destination (queue, stream or exchange).
 * While other destinations accept messages, the destination is at fault.
 */
import { type Clock, systemClock } from '../core/clock.js'

/** An acceptance longer ago than this does not show that the broker works now. */
const RECENT_MS = 10_000
/** The most destinations to remember, because schedules may name any number. */
const MOST = 1_000

export class Destinations {
  readonly #clock: Clock
  /** When each destination last accepted a message, unless it has refused one since. */
  readonly #accepted = new Map<string, number>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  accepted(destination: string): void {
    if (this.#accepted.size >= MOST && !this.#accepted.has(destination)) this.#accepted.clear()
    this.#accepted.set(destination, this.#clock.monotonic())
  }

  /** Returns whether the refusal means a broker outage. */
  refused(destination: string): boolean {
    this.#accepted.delete(destination)
    const recent = this.#clock.monotonic() - RECENT_MS
    for (const at of this.#accepted.values()) if (at >= recent) return false
    return true
  }
}
