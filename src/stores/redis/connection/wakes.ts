/**
 * Hints at changes. A change through this handle wakes its own listeners at once. Other processes are woken by PUBLISH,
 * at most every 10 ms, with all changes since the last message. When a lock is handed to a waiter, the script itself
 * publishes the holder's name at once (locks/pass-on.lua), so that no other waiter has to look.
 */
import type { Clock } from '../../../core/clock.js'
import type { Wake, WakeListener } from '../../../core/store.js'

export const EVERYTHING: Woken = ['schedules', 'runs', 'leases', 'attempts', 'settled']

export type Woken = readonly Wake[]

/**
 * A message on the channel, as JSON: the changes of a process, a lock that was handed over, or a test of the
 * connection.
 */
export type Hint =
  | { readonly from: string; readonly woken: Woken }
  | { readonly holder: string }
  | { readonly test: true }

const PUBLISH_EVERY_MS = 10

export class Wakes {
  readonly #clock: Clock
  readonly #publish: (woken: Woken) => void
  readonly #listening = new Set<WakeListener>()
  readonly #local = new Set<Wake>()
  readonly #remote = new Set<Wake>()
  #resting: (() => void) | undefined

  constructor(clock: Clock, publish: (woken: Woken) => void) {
    this.#clock = clock
    this.#publish = publish
  }

  /** Must be called after each change through this handle. */
  announce = (woken: Woken): void => {
    if (woken.length === 0) return
    if (this.#local.size === 0) queueMicrotask(() => this.#tell())
    for (const wake of woken) {
      this.#local.add(wake)
      this.#remote.add(wake)
    }
    if (this.#resting === undefined) this.#send()
  }

  /** Must be called when a message reports changes of another process. */
  heard(woken: Woken): void {
    for (const wake of woken) {
      for (const listener of [...this.#listening]) listener(wake)
    }
  }

  /** Must be called when a message names a new holder, which may wait in this process. */
  handedTo(holder: string): void {
    for (const listener of [...this.#listening]) listener('leases', holder)
  }

  subscribe = (listener: WakeListener): (() => void) => {
    // A new function for each call, so that the same listener can subscribe twice.
    const own: WakeListener = (wake, holder) => listener(wake, holder)
    this.#listening.add(own)
    return () => {
      this.#listening.delete(own)
    }
  }

  close(): void {
    this.#resting?.()
    this.#remote.clear()
  }

  #tell(): void {
    const woken = [...this.#local]
    this.#local.clear()
    this.heard(woken)
  }

  #send(): void {
    const woken = [...this.#remote]
    this.#remote.clear()
    this.#resting = undefined
    if (woken.length === 0) return
    this.#publish(woken)
    this.#resting = this.#clock.after(PUBLISH_EVERY_MS, () => this.#send())
  }
}
