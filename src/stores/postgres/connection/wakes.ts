/**
 * Hints of changes, so that instances need not wait for their next poll.
 *
 * Every operation answers with what it changed. Subscribers in this process hear of it at once. Other processes hear of
 * it by NOTIFY, which is a statement of its own: the commit of a transaction that notifies queues behind all others that
 * do. One NOTIFY is in flight at a time, at most one every 10 ms, with all changes since the last one. Only a granted
 * lock skips the pause, because its waiter waits for nothing else.
 *
 * Losing a hint is harmless: the poll finds the change.
 */
import type { Clock } from '../../../core/clock.js'
import type { Wake, WakeListener } from '../../../core/store.js'

/** What changed. `granted`: a lock was handed to its next waiter; it adds haste to `leases`, and is no wake-up itself. */
export type Change = Wake | 'granted'

const CHANGES: readonly Change[] = ['schedules', 'runs', 'leases', 'attempts', 'settled', 'granted']
const WAKES = CHANGES.filter((change): change is Wake => change !== 'granted')

/** How functions of the database return changes: as an array of words, or as bits in the order of `CHANGES`. */
export type Changes = readonly Change[] | string | number | null | undefined

export const WAKE_SCHEDULES = 1
export const WAKE_RUNS = 2
export const WAKE_LEASES = 4
export const WAKE_ATTEMPTS = 8
export const WAKE_SETTLED = 16
export const WAKE_GRANTED = 32

export const NOTIFY_EVERY_MS = 10

/** `{runs,leases}` and `6` both give runs and leases; words that this release does not know are left out. */
export function changesIn(changes: Changes): readonly Change[] {
  if (changes === null || changes === undefined) return []
  if (typeof changes === 'object') return changes
  const bits = Number(changes)
  if (!Number.isNaN(bits)) return CHANGES.filter((_, at) => (bits & (1 << at)) !== 0)
  const words = new Set(String(changes).match(/\w+/g))
  return CHANGES.filter((change) => words.has(change))
}

export class Wakes {
  readonly #clock: Clock
  readonly #notify: ((changes: readonly Change[]) => Promise<void>) | undefined
  readonly #listeners = new Set<WakeListener>()
  #local = new Set<Change>()
  #remote = new Set<Change>()
  /** Ends the pause after a NOTIFY. */
  #endPause: (() => void) | undefined
  #isInFlight = false

  /** `notify` is left out where no other process is told. */
  constructor(clock: Clock, notify: ((changes: readonly Change[]) => Promise<void>) | undefined) {
    this.#clock = clock
    this.#notify = notify
  }

  /** This process changed something. Changes of one microtask are told together. */
  announce = (changes: readonly Change[]): void => {
    if (changes.length === 0) return
    if (this.#local.size === 0) queueMicrotask(() => this.#tellSubscribers())
    for (const change of changes) this.#local.add(change)
    if (this.#notify === undefined) return
    for (const change of changes) this.#remote.add(change)
    if (this.#endPause === undefined || changes.includes('granted')) this.#send()
  }

  /** A lock was handed to a waiter in this process. */
  handedTo(holder: string): void {
    for (const listener of [...this.#listeners]) listener('leases', holder)
  }

  /** Another process changed something; without saying what, it may be anything. */
  heard(changes: readonly Change[] = CHANGES): void {
    for (const wake of WAKES) {
      if (changes.includes(wake)) for (const listener of [...this.#listeners]) listener(wake)
    }
  }

  subscribe = (listener: WakeListener): (() => void) => {
    // A function that subscribes twice has two subscriptions.
    const own: WakeListener = (wake, holder) => listener(wake, holder)
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  close(): void {
    this.#endPause?.()
    this.#remote.clear()
  }

  #tellSubscribers(): void {
    const changes = [...this.#local]
    this.#local.clear()
    this.heard(changes)
  }

  #send(): void {
    this.#endPause?.()
    this.#endPause = undefined
    if (this.#isInFlight || this.#remote.size === 0 || this.#notify === undefined) return
    const changes = [...this.#remote]
    this.#remote.clear()
    this.#isInFlight = true
    void this.#notify(changes).finally(() => {
      this.#isInFlight = false
      if (this.#endPause === undefined) this.#send()
    })
    this.#endPause = this.#clock.after(NOTIFY_EVERY_MS, () => this.#send())
  }
}
