/**
 * Notices what other processes write, and sends hints.
 *
 * SQLite has no notifications, but every commit is written to the log beside the file, which the system can watch. Our own
 * commits are among these writes, so `pragma data_version` is asked whether another connection has committed: that costs
 * microseconds. Nothing is read while nothing is written.
 *
 * A commit becomes visible only after the log was written and synced, and the system reports the write alone. So several looks
 * follow each write, at growing intervals.
 *
 * Where the log cannot be watched, or the system drops an event, polling finds the changes.
 */
import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../../../core/clock.js'
import type { Wake } from '../../../core/store.js'
import type { Connection } from './connection.js'
import source from './other-writers.sql'
import { type Nothing, statement } from './statements.js'

/** When to look after a write, each counted from the one before. */
const LOOKS_MS = [5, 20, 60, 200] as const
/** The least time between two looks, however much is written. */
const APART_MS = 20

const dataVersion = statement<Nothing, { data_version: number }>(source, 'dataVersion')
const cancelledRuns = statement<Nothing, { id: number }>(source, 'cancelledRuns')

export class OtherWriters {
  readonly #db: Connection
  readonly #clock: Clock
  readonly #announce: (wakes: ReadonlySet<Wake>) => void
  #log: string | undefined
  #watcher: FSWatcher | undefined
  #version: number | undefined
  #cancelled: ReadonlySet<number> = new Set()
  #lookedAt = Number.NEGATIVE_INFINITY
  /** The number of looks since the last write, and the next planned look. */
  #looks = 0
  #next: { readonly at: number; readonly cancel: () => void } | undefined

  constructor(db: Connection, clock: Clock, announce: (wakes: ReadonlySet<Wake>) => void) {
    this.#db = db
    this.#clock = clock
    this.#announce = announce
  }

  watch(path: string): void {
    this.#log = `${path}-wal`
    try {
      this.#version = this.#dataVersion()
    } catch {
      // Known after the first look.
    }
    this.#arm()
  }

  close(): void {
    this.#log = undefined
    this.#disarm()
    this.#next?.cancel()
    this.#next = undefined
  }

  #arm(): void {
    if (this.#log === undefined || this.#watcher !== undefined) return
    try {
      this.#watcher = watch(this.#log, { persistent: false }, () => this.#written())
      this.#watcher.on('error', () => this.#disarm())
    } catch {
      // No watches are left, or the system has none.
    }
  }

  #disarm(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }

  /** One write is many events: after the first, the watch is off until the next look. */
  #written(): void {
    this.#disarm()
    this.#looks = 0
    this.#lookIn(LOOKS_MS[0])
  }

  /** A look that is planned sooner stays, so that a busy writer cannot postpone it for ever. */
  #lookIn(delayMs: number): void {
    const now = this.#clock.monotonic()
    const at = Math.max(now + delayMs, this.#lookedAt + APART_MS)
    if (this.#next !== undefined && this.#next.at <= at) return
    this.#next?.cancel()
    const look = () => {
      this.#next = undefined
      this.#lookedAt = this.#clock.monotonic()
      this.#looks += 1
      const delay = LOOKS_MS[this.#looks]
      if (delay !== undefined) this.#lookIn(delay)
      // The watch begins before the look, so that no write between the two is missed.
      this.#arm()
      this.#look()
    }
    this.#next = { at, cancel: this.#clock.after(at - now, look) }
  }

  #look(): void {
    try {
      const version = this.#dataVersion()
      if (version === this.#version) return
      this.#version = version
      // No hint of leases: a waiter that asks writes, so waiters in two processes would wake each other for ever.
      const wakes = new Set<Wake>(['schedules', 'runs', 'settled'])
      // A cancel is hinted at only once, for the same reason: the hint makes an instance beat, which writes.
      if (this.#newCancels()) wakes.add('attempts')
      this.#announce(wakes)
    } catch {
      // The file cannot be read now: the next operation fails with the reason.
    }
  }

  #newCancels(): boolean {
    const before = this.#cancelled
    this.#cancelled = new Set(this.#db.all(cancelledRuns, {}).map(({ id }) => id))
    return [...this.#cancelled].some((id) => !before.has(id))
  }

  #dataVersion(): number | undefined {
    return this.#db.get(dataVersion, {})?.data_version
  }
}
