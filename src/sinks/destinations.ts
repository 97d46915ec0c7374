/**
 * Decides whether a refusal without a reason means a broker outage or one bad destination (queue, stream or exchange). While
 * other destinations accept messages, it is the destination.
 */
import { type Clock, systemClock } from '../core/clock.js'

/** An older acceptance says nothing about the broker's state now. */
const RECENT_MS = 10_000
/** Schedules may name any number of destinations. */
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
