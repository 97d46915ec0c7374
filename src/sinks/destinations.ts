/**
 * Whom a refusal without a reason is about: the broker, or the queue, stream or exchange that the message is for. While
 * another destination takes messages, it is the destination.
 */
import { type Clock, systemClock } from '../core/clock.js'

/** What was taken longer ago says nothing about now. */
const RECENT_MS = 10_000
/** Schedules may name any number of destinations. */
const MOST = 1_000

export class Destinations {
  readonly #clock: Clock
  /** When each of them last took a message; without those that have refused one since. */
  readonly #taken = new Map<string, number>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  took(destination: string): void {
    if (this.#taken.size >= MOST && !this.#taken.has(destination)) this.#taken.clear()
    this.#taken.set(destination, this.#clock.monotonic())
  }

  /** Answers whether the broker is to blame. */
  refused(destination: string): boolean {
    this.#taken.delete(destination)
    const recent = this.#clock.monotonic() - RECENT_MS
    for (const at of this.#taken.values()) if (at >= recent) return false
    return true
  }
}
