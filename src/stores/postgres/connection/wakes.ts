/**
 * Hints. In the database they are bits. What was done through this handle is hinted at here at once, and to the other
 * processes by NOTIFY: as a statement of its own, never in the transaction of a batch (its commit would queue behind all
 * others), and at most every few milliseconds for everything that happened in between. Only a lock that was handed to
 * somebody is told at once: he sits and waits for nothing else.
 */
import type { Clock } from '../../../core/clock.js'
import type { Wake, WakeListener } from '../../../core/store.js'

const WAKES: readonly Wake[] = ['schedules', 'runs', 'leases', 'attempts', 'settled']

export const WAKE_SCHEDULES = 1
export const WAKE_RUNS = 2
export const WAKE_LEASES = 4
export const WAKE_ATTEMPTS = 8
export const WAKE_SETTLED = 16
/** A lock was handed to the next in its line. No hint by itself: it says that there is no time to lose. */
export const WAKE_GRANTED = 32

export const NOTIFY_EVERY_MS = 10

export class Wakes {
  readonly #clock: Clock
  readonly #notify: ((bits: number) => Promise<void>) | undefined
  readonly #listening = new Set<WakeListener>()
  #local = 0
  #remote = 0
  #resting: (() => void) | undefined
  #sending = false

  constructor(clock: Clock, notify: ((bits: number) => Promise<void>) | undefined) {
    this.#clock = clock
    this.#notify = notify
  }

  /** Something was changed through this handle. */
  announce = (bits: number): void => {
    if (this.#local === 0) queueMicrotask(() => this.#tell())
    this.#local |= bits
    if (this.#notify === undefined) return
    this.#remote |= bits
    if (this.#resting === undefined || (bits & WAKE_GRANTED) !== 0) this.#send()
  }

  /** A lock was handed to somebody who waits in this process. */
  handedTo(holder: string): void {
    for (const listener of [...this.#listening]) listener('leases', holder)
  }

  /** Something was changed by another process. */
  heard(bits: number): void {
    for (const [at, wake] of WAKES.entries()) {
      if ((bits & (1 << at)) !== 0) for (const listener of [...this.#listening]) listener(wake)
    }
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

  /** While one is on its way no other is sent: what has come meanwhile goes out when it has arrived, however long that takes. */
  #send(): void {
    this.#resting?.()
    this.#resting = undefined
    if (this.#sending) return
    const bits = this.#remote
    this.#remote = 0
    if (bits === 0 || this.#notify === undefined) return
    this.#sending = true
    void this.#notify(bits).finally(() => {
      this.#sending = false
      if (this.#resting === undefined) this.#send()
    })
    this.#resting = this.#clock.after(NOTIFY_EVERY_MS, () => this.#send())
  }
}
