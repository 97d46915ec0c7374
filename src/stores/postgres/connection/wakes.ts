/**
 * Hints of changes, so that instances need not wait for their next poll.
 *
 * Every operation returns what it changed. Subscribers in this process get the hint at once. Other processes get it by
 * NOTIFY, in a separate statement: Postgres commits transactions that notify one after the other. One NOTIFY is in
 * flight at a time, at most one every 10 ms, with all changes since the last one. Only the hint of a granted lock skips
 * the pause, because a waiter needs that hint to go on.
 *
 * Losing a hint is harmless: the poll finds the change.
 */
import type { Clock } from '../../../core/clock.js'
import { Listeners } from '../../../core/connection/listeners.js'
import type { Wake } from '../../../core/store.js'

/**
 * A kind of change. `granted`: a lock was handed to its next waiter. It accompanies `leases`, and only makes the NOTIFY
 * skip the pause.
 */
export type Change = Wake | 'granted'

const WAKES: readonly Wake[] = ['schedules', 'runs', 'leases', 'attempts', 'settled']
const CHANGES: readonly Change[] = [...WAKES, 'granted']

export const NOTIFY_EVERY_MS = 10

/**
 * Parses changes as database functions return them, such as `{leases,runs}`. Unknown words, from a newer release, are
 * ignored.
 */
export function changesIn(text: string): readonly Change[] {
  const words = new Set(text.match(/\w+/g))
  return CHANGES.filter((change) => words.has(change))
}

export class Wakes {
  readonly #clock: Clock
  readonly #notify: ((changes: readonly Change[]) => Promise<void>) | undefined
  readonly #listeners = new Listeners()
  readonly subscribe = this.#listeners.subscribe
  #remote = new Set<Change>()
  /** Cancels the pause after a NOTIFY. Undefined when no pause is running. */
  #endPause: (() => void) | undefined
  #isInFlight = false

  /** `notify` is undefined if other processes are not notified. */
  constructor(clock: Clock, notify: ((changes: readonly Change[]) => Promise<void>) | undefined) {
    this.#clock = clock
    this.#notify = notify
  }

  /** Announces a change by this process. Subscribers get the changes of one microtask together. */
  announce = (changes: readonly Change[]): void => {
    if (changes.length === 0) return
    this.heard(changes)
    if (this.#notify === undefined) return
    for (const change of changes) this.#remote.add(change)
    if (this.#endPause === undefined || changes.includes('granted')) this.#send()
  }

  /** Announces that a lock was handed to `holder`, which may be a waiter in this process. */
  handedTo(holder: string): void {
    this.#listeners.announce([{ handedTo: holder }])
  }

  /** Announces changes by another process. Without `changes`, anything may have changed. */
  heard(changes: readonly Change[] = CHANGES): void {
    this.#listeners.announce(WAKES.filter((wake) => changes.includes(wake)))
  }

  close(): void {
    this.#endPause?.()
    this.#remote.clear()
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
