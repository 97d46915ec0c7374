/**
 * Notices what other processes write, and sends hints. SQLite has no notifications, but `pragma data_version` says in microseconds
 * whether another connection has committed, so it is asked many times a second. The file is read only when it has changed.
 */
import { type Alarm, type Clock, setAlarm } from '../../../core/clock.js'
import type { Wake } from '../../../core/store.js'
import type { Connection } from './connection.js'
import source from './other-writers.sql'
import { type Nothing, row, rows } from './statements.js'

const LOOK_MS = 30

const dataVersion = row<Nothing, { data_version: number }>(source, 'dataVersion')
const cancelledRuns = rows<Nothing, { id: number }>(source, 'cancelledRuns')

export class OtherWriters {
  readonly #db: Connection
  readonly #clock: Clock
  readonly #announce: (wakes: ReadonlySet<Wake>) => void
  #version: number | undefined
  #cancelled: ReadonlySet<number> = new Set()
  #next: Alarm

  constructor(db: Connection, clock: Clock, announce: (wakes: ReadonlySet<Wake>) => void) {
    this.#db = db
    this.#clock = clock
    this.#announce = announce
    this.#next = this.#lookLater()
  }

  close(): void {
    this.#next.close()
  }

  #lookLater(): Alarm {
    const next = setAlarm(this.#clock, LOOK_MS, () => {
      this.#next = this.#lookLater()
      this.#look()
    })
    // The process may end while the store is open.
    next.unref()
    return next
  }

  #look(): void {
    try {
      const version = dataVersion({ db: this.#db }, {})?.data_version
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
    this.#cancelled = new Set(cancelledRuns({ db: this.#db }, {}).map(({ id }) => id))
    return [...this.#cancelled].some((id) => !before.has(id))
  }
}
