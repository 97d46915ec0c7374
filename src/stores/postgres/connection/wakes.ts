/**
 * Hints of changes, so that instances need not wait for their next poll.
 *
 * Every operation answers with what it changed. Subscribers in this process hear of it at once. Other processes hear of
 * it by NOTIFY, in a separate statement: the commit of a transaction that notifies queues behind all others that
 * do. One NOTIFY is in flight at a time, at most one every 10 ms, with all changes since the last one. Only a granted
 * lock skips the pause, because its waiter waits for nothing else.
 *
 * Losing a hint is harmless: the poll finds the change.
 */
import type { Clock } from '../../../core/clock.js'
import { Listeners } from '../../../core/connection/listeners.js'
import type { Wake } from '../../../core/store.js'

/** What changed. `granted`: a lock was handed to its next waiter; it adds haste to `leases`, and is no wake-up itself. */
export type Change = Wake | 'granted'

const WAKES: readonly Wake[] = ['schedules', 'runs', 'leases', 'attempts', 'settled']
const CHANGES: readonly Change[] = [...WAKES, 'granted']

export const NOTIFY_EVERY_MS = 10

/** The words of `{leases,runs}`, as functions of the database return changes. Words of a newer release are left out. */
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
    this.heard(changes)
    if (this.#notify === undefined) return
    for (const change of changes) this.#remote.add(change)
    if (this.#endPause === undefined || changes.includes('granted')) this.#send()
  }

  /** A lock was handed to a waiter in this process. */
  handedTo(holder: string): void {
    this.#listeners.announce([{ handedTo: holder }])
  }

  /** Another process changed something; without saying what, it may be anything. */
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
