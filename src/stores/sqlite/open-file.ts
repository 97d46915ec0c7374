/** The life of a handle: opened by its first use, brought up to date, closed when the last who opened it has closed. */
import { resolve } from 'node:path'
import type { Clock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { AttemptRef } from '../../core/instance.js'
import type { TransactResult } from '../../core/store.js'
import { Connection, configure, openDriver } from './connection.js'
import { type BetterSqliteHandle, betterSqlite } from './driver.js'
import { SqliteFile } from './file.js'
import { checkPath, fileError } from './file-errors.js'
import { Listeners } from './listeners.js'
import { Definitions } from './schedule-row.js'
import { checkVersion, migrate, SCHEMA_VERSION, schemaVersion } from './schema.js'
import { PromiseRefused, promiseRefused, transactRun } from './transact.js'

export type SqliteOptions = {
  /** The store's clock; the system's by default. All processes that share the file must have the same. */
  readonly clock?: Clock
  /** For how many milliseconds an operation tries again while another process writes. Default 5,000. */
  readonly busyMs?: number
} & (
  | { readonly path: string }
  /** A handle of better-sqlite3 or of a driver like it, for Belfry alone: it sets pragmas on it. */
  | { readonly database: BetterSqliteHandle }
)

const BUSY_MS = 5_000

export class OpenFile {
  readonly listeners = new Listeners()
  readonly definitions = new Definitions()
  /** Of which version the file was before this handle opened it. */
  foundVersion = SCHEMA_VERSION
  readonly #options: SqliteOptions
  readonly #clock: Clock
  readonly #path: string
  #opened = 0
  #file: Promise<SqliteFile> | undefined
  #connection: Connection | undefined
  /** Of handlers' transactions. */
  #second: Connection | undefined
  #closed = false

  constructor(options: SqliteOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
    this.#path = 'path' in options ? checkedPath(options.path) : 'of the given handle'
  }

  async open(): Promise<void> {
    this.#opened += 1
    this.#closed = false
    try {
      await this.file()
    } catch (error) {
      this.#opened -= 1
      throw error
    }
  }

  async close(): Promise<void> {
    this.#opened = Math.max(this.#opened - 1, 0)
    if (this.#opened > 0) return
    this.#closed = true
    const file = await this.#file?.catch(() => undefined)
    this.#file = undefined
    await file?.close()
    this.#closeSecond()
    if ('path' in this.#options) this.#connection?.finish()
    this.#connection = undefined
    this.definitions.clear()
  }

  file(): Promise<SqliteFile> {
    if (this.#closed) return Promise.reject(failure('NOT_RUNNING', `the store on ${this.#path} is closed`))
    this.#file ??= this.#start().catch((error: unknown) => {
      // The next use tries again.
      this.#file = undefined
      throw error
    })
    return this.#file
  }

  async transact(attempt: AttemptRef, work: (tx: unknown) => unknown): Promise<TransactResult> {
    const file = await this.file()
    const result = await file.apart(() => this.#tryTransact(attempt, work))
    if (result === 'stale' || 'result' in result) return result
    throw result.error
  }

  #tryTransact(attempt: AttemptRef, work: (tx: unknown) => unknown) {
    const result = transactRun(this.#transactions(), attempt, work)
    // What a promise still does must not reach the file: its connection is closed before it can go on.
    if (result !== 'stale' && 'error' in result && result.error instanceof PromiseRefused) {
      this.#closeSecond()
      return { error: promiseRefused() }
    }
    return result
  }

  async #start(): Promise<SqliteFile> {
    const db = this.#connect()
    const file = new SqliteFile(db, {
      path: this.#path,
      clock: this.#clock,
      busyMs: this.#options.busyMs ?? BUSY_MS,
      announce: (wakes) => this.listeners.announce(wakes),
      onRollback: () => this.definitions.clear(),
    })
    try {
      // Ten processes may start at once: each looks first, and whoever gets the lock finds it done or does it.
      await file.patiently(() => configure(db))
      const version = await file.read(schemaVersion)
      checkVersion(version, this.#path)
      if (version < SCHEMA_VERSION) this.foundVersion = await file.write((tx) => migrate(tx.db, this.#path))
    } catch (error) {
      if ('path' in this.#options) db.close()
      throw error
    }
    this.#connection = db
    return file
  }

  #connect(): Connection {
    if ('database' in this.#options) return new Connection(betterSqlite(this.#options.database))
    checkPath(this.#path)
    try {
      return new Connection(openDriver(this.#path))
    } catch (error) {
      throw fileError(error, this.#path)
    }
  }

  /** A connection of its own, so that what a handler does with it is apart from ours. A given handle is all there is. */
  #transactions(): Connection {
    if ('database' in this.#options && this.#connection !== undefined) return this.#connection
    if (this.#second === undefined) {
      const db = this.#connect()
      configure(db)
      this.#second = db
    }
    return this.#second
  }

  #closeSecond(): void {
    this.#second?.close()
    this.#second = undefined
  }
}

function checkedPath(path: string): string {
  if (typeof path === 'string' && path !== '' && path !== ':memory:') return resolve(path)
  throw failure('OPTION_INVALID', 'sqlite(): path must name a file; for a store in memory use memory()')
}
