/**
 * Hints of what other processes write.
 *
 * SQLite tells nobody, but what others commit is written to the log beside the file, and the system tells who watches
 * that. It tells of our own commits as well, so the connection is asked whether anybody else's is among them: that is
 * one number, and costs microseconds. Nothing is looked at while nothing is written.
 *
 * The log is written first, then synced, and only then is the commit there to be seen: of that the system tells
 * nothing. So after a write there are several looks, further and further apart.
 *
 * These are hints: where the log cannot be watched, or the system forgets to tell, everything is found by polling.
 */
import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../../core/clock.js'
import type { Wake } from '../../core/store.js'
import type { Connection } from './connection.js'

/** When to look after a write, each counted from the one before. */
const LOOKS_MS = [5, 20, 60, 200] as const
/** However much is written, there are no more looks than this. */
const APART_MS = 20

const DATA_VERSION = 'pragma data_version'
const CANCELLED = 'select id from belfry_runs where state = 2 and cancel = 1'

export class OtherWriters {
  readonly #db: Connection
  readonly #clock: Clock
  readonly #announce: (wakes: ReadonlySet<Wake>) => void
  #log: string | undefined
  #watcher: FSWatcher | undefined
  #version: number | undefined
  #cancelled: ReadonlySet<number> = new Set()
  #lookedAt = Number.NEGATIVE_INFINITY
  /** How many looks there were since the last write, and the next one. */
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

  /** One write is many events, and we write ourselves: after the first nothing more is listened to until the next look. */
  #written(): void {
    this.#disarm()
    this.#looks = 0
    this.#lookIn(LOOKS_MS[0])
  }

  /** One that comes sooner stays, so that somebody who writes all the time does not put it off for ever. */
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
      // Before the look: what is written from here on is told of.
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
      // Leases are not among them: whoever waits for one asks by writing, and would wake all others by that in turn.
      const wakes = new Set<Wake>(['schedules', 'runs', 'settled'])
      // For the same reason a cancel is told of once: who is told of one beats.
      if (this.#newCancels()) wakes.add('attempts')
      this.#announce(wakes)
    } catch {
      // A file that cannot be read now: polling will say so.
    }
  }

  #newCancels(): boolean {
    const before = this.#cancelled
    this.#cancelled = new Set(this.#db.all<[number]>(CANCELLED).map(([id]) => id))
    return [...this.#cancelled].some((id) => !before.has(id))
  }

  #dataVersion(): number | undefined {
    return this.#db.get<[number]>(DATA_VERSION)?.[0]
  }
}
