/**
 * The handle on the file, and how it is shared.
 *
 * SQLite has one writer at a time, and its calls are synchronous. So every write is one short transaction that begins,
 * works and commits within a turn of the event loop; nothing of ours is ever open while others get theirs. A file that
 * another process is writing to is tried again after a few milliseconds, by a timer, never by waiting inside SQLite:
 * the loop goes on, and with it the beats.
 *
 * Writes that come while one waits, or in the same turn, share a transaction and its one sync to disk. Each has a
 * savepoint of its own, so that one that throws takes nothing else with it. After a while the turn is given up.
 */
import { setImmediate } from 'node:timers/promises'
import { type Clock, sleep } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Wake } from '../../core/store.js'
import type { Connection } from './connection.js'
import { fileError, isBusy } from './file-errors.js'
import { newTx, type Tx } from './tx.js'

interface Pending {
  readonly work: (tx: Tx) => unknown
  readonly resolve: (result: never) => void
  readonly reject: (error: unknown) => void
}

type Done = { readonly result: unknown } | { readonly error: unknown }

/** For how long one transaction takes up more work, and for how long a turn begins new ones. */
const TURN_MS = 10
const MAX_WAIT_MS = 16

export interface FileOptions {
  readonly path: string
  readonly clock: Clock
  /** How long a busy file is tried again before an operation fails. */
  readonly busyMs: number
  /** Told what changed, after each commit. */
  readonly announce: (wakes: ReadonlySet<Wake>) => void
  /** Told that what was seen inside a transaction never came to be. */
  readonly onRollback: () => void
}

export class SqliteFile {
  readonly #options: FileOptions
  readonly #db: Connection
  #queue: Pending[] = []
  #flushing: Promise<void> | undefined
  #latest = 0
  /** When the event loop last had its turn, as far as we know. */
  #turnAt = 0

  constructor(db: Connection, options: FileOptions) {
    this.#db = db
    this.#options = options
  }

  /**
   * The store's time is the host's. A clock that is set back a little, as time services do, stands still meanwhile, so
   * that nothing ends before it began; one that is set back by more is followed.
   */
  now(): number {
    const now = this.#options.clock.now()
    const back = this.#latest - now
    if (back > 0 && back < 1_000) return this.#latest
    this.#latest = now
    return now
  }

  /** The file's own name, as SQLite has it. */
  name(): string | undefined {
    return this.#db.get<[string]>(`select file from pragma_database_list where name = 'main'`)?.[0]
  }

  /** Looks at the file as it is now. */
  async read<Result>(work: (db: Connection, now: number) => Result): Promise<Result> {
    return this.patiently(() => work(this.#db, this.now()))
  }

  /** Does its work in a write transaction: all of it or nothing. It may be begun more than once. */
  write<Result>(work: (tx: Tx) => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as Pending['resolve'], reject })
      this.#flushing ??= this.#flush()
    })
  }

  /** Tries something again while the file is busy. */
  async patiently<Result>(attempt: () => Result): Promise<Result> {
    const { clock, busyMs, path } = this.#options
    const startedAt = clock.monotonic()
    for (let most = 1; ; most = Math.min(most * 2, MAX_WAIT_MS)) {
      try {
        return attempt()
      } catch (error) {
        if (!isBusy(error)) throw fileError(error, path)
        if (clock.monotonic() - startedAt >= busyMs) throw this.#unreachable(error)
      }
      await sleep(clock, most * (0.5 + Math.random() / 2))
    }
  }

  /** Lets the event loop go on when this turn has taken long enough. */
  async breathe(): Promise<void> {
    const { clock } = this.#options
    if (clock.monotonic() - this.#turnAt < TURN_MS) return
    await setImmediate()
    this.#turnAt = clock.monotonic()
  }

  async close(): Promise<void> {
    await this.#flushing
  }

  async #flush(): Promise<void> {
    // Writes of the same turn share a transaction.
    await Promise.resolve()
    this.#turnAt = this.#options.clock.monotonic()
    while (this.#queue.length > 0) {
      try {
        await this.patiently(() => this.#commitGroup())
      } catch (error) {
        for (const { reject } of this.#queue.splice(0)) reject(error)
      }
      await this.breathe()
    }
    this.#flushing = undefined
  }

  /** One transaction for the writes at the head of the queue. They leave it when they are on disk. */
  #commitGroup(): void {
    const { clock, announce } = this.#options
    const startedAt = clock.monotonic()
    const wakes = new Set<Wake>()
    const done: Done[] = []
    this.#db.begin()
    try {
      const group = this.#queue.length > 1
      for (const { work } of this.#queue) {
        done.push(group ? this.#apart(work, wakes) : { result: this.#perform(work, wakes) })
        if (clock.monotonic() - startedAt >= TURN_MS) break
      }
      this.#db.run('commit')
    } catch (error) {
      this.#rollBack()
      if (this.#queue.length > 1 || isBusy(error)) throw error
      // Alone: what it threw is its own answer.
      this.#queue.shift()?.reject(fileError(error, this.#options.path))
      return
    }
    for (const outcome of done) {
      const pending = this.#queue.shift()
      if ('error' in outcome) pending?.reject(fileError(outcome.error, this.#options.path))
      else pending?.resolve(outcome.result as never)
    }
    announce(wakes)
  }

  #perform(work: Pending['work'], wakes: Set<Wake>): unknown {
    const tx = newTx(this.#db, this.now(), wakes)
    const result = work(tx)
    tx.counters.flush()
    return result
  }

  #apart(work: Pending['work'], wakes: Set<Wake>): Done {
    this.#db.run('savepoint belfry')
    try {
      const result = this.#perform(work, wakes)
      this.#db.run('release belfry')
      return { result }
    } catch (error) {
      if (isBusy(error) || this.#db.driver.inTransaction === false) throw error
      this.#db.run('rollback to belfry')
      this.#db.run('release belfry')
      return { error }
    }
  }

  /** Some errors have already rolled back. */
  #rollBack(): void {
    this.#options.onRollback()
    try {
      this.#db.run('rollback')
    } catch {
      // There was nothing left to roll back.
    }
  }

  #unreachable(cause: unknown) {
    const { path, busyMs } = this.#options
    return failure(
      'STORE_UNREACHABLE',
      `the SQLite file ${path} has been locked by another process for ${busyMs} ms: a writer there is stuck or stopped`,
      { cause },
    )
  }
}
