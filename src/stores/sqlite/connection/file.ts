/**
 * The handle on the file, and how processes share the file.
 *
 * SQLite has one writer at a time, and its calls are synchronous. So every write is one short transaction that begins, works
 * and commits within a turn of the event loop (`write-queue.ts`). While another process writes, the operation is tried again
 * after a few milliseconds, by a timer and never by a wait inside SQLite: the event loop goes on, and with it the beats.
 */
import { type Clock, sleep } from '../../../core/clock.js'
import type { Hint } from '../../../core/connection/hint.js'
import { failure } from '../../../core/errors.js'
import type { Connection } from './connection.js'
import { fileError, isBusy } from './errors.js'
import type { Snapshot, Tx } from './tx.js'
import { type Steps, WriteQueue } from './write-queue.js'

/** The longest pause before a busy file is tried again. After `URGENT_MS` of waiting it is tried every millisecond. */
const MAX_PAUSE_MS = 8
const URGENT_MS = 50
/** How long after a busy try the file counts as contended: transactions are shorter, with gaps for other writers. */
const CONTENDED_MS = 1_000
/** How many runs one transaction starts or settles. With 300 alone, bench `runs` loses a third of its rate. */
const SHARE = { alone: 1_000, contended: 300 } as const

export interface FileOptions {
  readonly path: string
  readonly clock: Clock
  /** How long a busy file is tried again before an operation fails. */
  readonly busyMs: number
  /** Called after each commit with what changed. */
  readonly announce: (wakes: ReadonlySet<Hint>) => void
  /** Called at the end of each operation, before the commit. */
  readonly beforeCommit: (tx: Tx) => void
}

export class SqliteFile {
  readonly #options: FileOptions
  readonly #db: Connection
  readonly #writes: WriteQueue
  #latest = 0
  #busyAt = Number.NEGATIVE_INFINITY

  constructor(db: Connection, options: FileOptions) {
    this.#db = db
    this.#options = options
    this.#writes = new WriteQueue(db, options, this)
  }

  /**
   * The store's time: the host's clock. When the clock is set back by less than a second, as time services do, the store's time
   * stands still until the clock has caught up, so that nothing ends before it began. A larger step back is followed.
   */
  now(): number {
    const now = this.#options.clock.now()
    const back = this.#latest - now
    if (back > 0 && back < 1_000) return this.#latest
    this.#latest = now
    return now
  }

  /** The file as SQLite names it. */
  name(): string {
    return this.#db.fileName()
  }

  /** Reads in turns of the event loop, too: many callers may read at once. */
  async read<Result>(work: (snapshot: Snapshot) => Result): Promise<Result> {
    await this.breathe()
    return this.apart(() => work({ db: this.#db, now: this.now() }))
  }

  /** Runs when this process has no transaction open. */
  apart<Result>(attempt: () => Result): Promise<Result> {
    return this.patiently(() => this.#writes.between(attempt))
  }

  /** Runs in a write transaction, all or nothing. When the file is busy, `work` runs again from the start. */
  write<Result>(work: (tx: Tx) => Result): Promise<Result> {
    // biome-ignore lint/correctness/useYield: a short write is one step
    return this.#writes.add(function* (tx) {
      return work(tx)
    })
  }

  /** The same for work that may take long: in one transaction, and as many turns of the event loop as it needs. */
  writeInSteps<Result>(work: (tx: Tx) => Steps<Result>): Promise<Result> {
    return this.#writes.add(work)
  }

  /** Tries again while the file is busy. */
  async patiently<Result>(attempt: () => Result | Promise<Result>): Promise<Result> {
    const { clock, busyMs, path } = this.#options
    const startedAt = clock.monotonic()
    for (let most = 1; ; most = Math.min(most * 2, MAX_PAUSE_MS)) {
      try {
        return await attempt()
      } catch (error) {
        if (!isBusy(error)) throw fileError(error, path)
        this.#busyAt = clock.monotonic()
        if (this.#busyAt - startedAt >= busyMs) throw this.#unreachable(error)
      }
      await sleep(clock, this.#busyAt - startedAt > URGENT_MS ? 1 : most * (0.5 + Math.random() / 2))
    }
  }

  /** Whether other processes write, too. Those that have waited long try every millisecond, and need a gap. */
  get contended(): boolean {
    return this.#options.clock.monotonic() - this.#busyAt < CONTENDED_MS
  }

  /** How many runs one transaction may start or settle: while it lasts, no other process can write. */
  get share(): number {
    return this.contended ? SHARE.contended : SHARE.alone
  }

  /** Lets the event loop go on when this turn has taken long enough. */
  breathe(): Promise<void> {
    return this.#writes.breathe()
  }

  close(): Promise<void> {
    return this.#writes.drained()
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
