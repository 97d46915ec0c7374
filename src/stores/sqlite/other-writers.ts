/**
 * Hints of what other processes write.
 *
 * SQLite tells nobody, but what others commit is written to the log beside the file, and the system tells who watches
 * that. It tells of our own commits as well, so the connection is asked whether anybody else's is among them: that is
 * one number, and costs microseconds. Nothing is looked at while nothing is written.
 *
 * These are hints: where the log cannot be watched, or the system forgets to tell, everything is found by polling.
 */
import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../../core/clock.js'
import type { Wake } from '../../core/store.js'
import type { Connection } from './connection.js'

/** However much others write, they are looked at no more often than this. */
const LOOK_MS = 25

const DATA_VERSION = 'pragma data_version'
const CANCELLED = 'select id from belfry_runs where state = 2 and cancel = 1'

export class OtherWriters {
  readonly #db: Connection
  readonly #clock: Clock
  readonly #announce: (wakes: ReadonlySet<Wake>) => void
  #watcher: FSWatcher | undefined
  #version: number | undefined
  #cancelled: ReadonlySet<number> = new Set()
  #lookedAt = Number.NEGATIVE_INFINITY
  #cancelLook: (() => void) | undefined

  constructor(db: Connection, clock: Clock, announce: (wakes: ReadonlySet<Wake>) => void) {
    this.#db = db
    this.#clock = clock
    this.#announce = announce
  }

  watch(path: string): void {
    try {
      this.#version = this.#dataVersion()
      this.#watcher = watch(`${path}-wal`, { persistent: false }, () => this.#written())
      this.#watcher.on('error', () => this.close())
    } catch {
      // No watches are left, or the system has none.
    }
  }

  close(): void {
    this.#watcher?.close()
    this.#watcher = undefined
    this.#cancelLook?.()
    this.#cancelLook = undefined
  }

  #written(): void {
    if (this.#cancelLook !== undefined) return
    const pauseMs = Math.max(this.#lookedAt + LOOK_MS - this.#clock.monotonic(), 0)
    this.#cancelLook = this.#clock.after(pauseMs, () => {
      this.#cancelLook = undefined
      this.#lookedAt = this.#clock.monotonic()
      this.#look()
    })
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
