/**
 * Hints. In the scripts they are bits. What was done through this handle is hinted at here at once, and to the other
 * processes by PUBLISH, at most every few milliseconds for everything that happened in between. Only a lock that is
 * handed to somebody who waits is published by the script itself, at once and with his name: he sits there and waits, and
 * nobody else has to look.
 */
import type { Clock } from '../../../core/clock.js'
import type { Wake, WakeListener } from '../../../core/store.js'

const WAKES: readonly Wake[] = ['schedules', 'runs', 'leases', 'attempts', 'settled']
export const WAKE_LEASES = 4
export const EVERYTHING = 31
/** Not a hint for anybody: runs and tickets of different shards have something to tell each other. */
export const WAKE_TICKETS = 32

const PUBLISH_EVERY_MS = 10

export class Wakes {
  readonly #clock: Clock
  readonly #publish: (bits: number) => void
  readonly #listening = new Set<WakeListener>()
  #local = 0
  #remote = 0
  #resting: (() => void) | undefined

  constructor(clock: Clock, publish: (bits: number) => void) {
    this.#clock = clock
    this.#publish = publish
  }

  /** Something was changed through this handle. */
  announce = (bits: number): void => {
    if (this.#local === 0) queueMicrotask(() => this.#tell())
    this.#local |= bits
    this.#remote |= bits
    if (this.#resting === undefined) this.#send()
  }

  /** Something was changed by another process. */
  heard(bits: number): void {
    for (const [at, wake] of WAKES.entries()) {
      if ((bits & (1 << at)) !== 0) for (const listener of [...this.#listening]) listener(wake)
    }
  }

  /** A lock was handed to somebody, who may wait in this process. */
  handedTo(holder: string): void {
    for (const listener of [...this.#listening]) listener('leases', holder)
  }

  subscribe = (listener: WakeListener): (() => void) => {
    // Each subscription is its own, even of the same function.
    const own: WakeListener = (wake, holder) => listener(wake, holder)
    this.#listening.add(own)
    return () => {
      this.#listening.delete(own)
    }
  }

  close(): void {
    this.#resting?.()
    this.#remote = 0
  }

  #tell(): void {
    const bits = this.#local
    this.#local = 0
    this.heard(bits)
  }

  #send(): void {
    const bits = this.#remote
    this.#remote = 0
    this.#resting = undefined
    if (bits === 0) return
    this.#publish(bits)
    this.#resting = this.#clock.after(PUBLISH_EVERY_MS, () => this.#send())
  }
}
