/** Opens the file at its first use and migrates it. Closes it after as many calls of `close` as of `open`. */
import { systemClock } from '../../../core/clock.js'
import { Listeners } from '../../../core/connection/listeners.js'
import { failure } from '../../../core/errors.js'
import type { AttemptRef } from '../../../core/instances/instance.js'
import type { TransactResult } from '../../../core/store.js'
import { passOn } from '../locks/pass-on.js'
import type { ParsedSqliteOptions } from '../options.js'
import { checkVersion, migrate, SCHEMA_VERSION, schemaVersion } from '../schema/migrate.js'
import { PromiseRefused, promiseRefused, transactRun } from '../transactions/transact.js'
import { checkPath, createPrivately } from './check-path.js'
import { Connection, configure } from './connection.js'
import { driverOf, openDriver } from './driver.js'
import { fileError, openError } from './errors.js'
import { SqliteFile } from './file.js'
import { FileIdentity } from './file-identity.js'
import { OtherWriters } from './other-writers.js'

export class OpenFile {
  readonly listeners = new Listeners()
  /** The version of the file before this handle opened it. */
  foundVersion = SCHEMA_VERSION
  readonly #options: ParsedSqliteOptions
  #opened = 0
  #file: Promise<SqliteFile> | undefined
  #connection: Connection | undefined
  #others: OtherWriters | undefined
  /** Undefined when the user passed a handle. */
  #identity: FileIdentity | undefined
  /** The connection for handlers' transactions. */
  #second: Connection | undefined
  #closed = false

  constructor(options: ParsedSqliteOptions) {
    this.#options = options
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
    this.#others?.close()
    this.#closeSecond()
    if (this.#options.database === undefined) this.#connection?.finish()
    this.#connection = undefined
  }

  async file(): Promise<SqliteFile> {
    const { path } = this.#options
    if (this.#closed) throw failure('NOT_RUNNING', `the store on ${path} is closed`)
    this.#file ??= this.#start().catch((error: unknown) => {
      // The next use tries again.
      this.#file = undefined
      throw error
    })
    const file = await this.#file
    this.#identity?.check()
    return file
  }

  /** Waits for a busy file, but never begins after the signal: by then another instance may have the run. */
  async transact(attempt: AttemptRef, work: (tx: unknown) => unknown, signal?: AbortSignal): Promise<TransactResult> {
    const file = await this.file()
    const result = await file.apart(() => {
      signal?.throwIfAborted()
      return this.#tryTransact(attempt, work)
    })
    if (result === 'stale' || 'result' in result) return result
    throw fileError(result.error, this.#options.path)
  }

  #tryTransact(attempt: AttemptRef, work: (tx: unknown) => unknown) {
    const result = transactRun(this.#transactions(), attempt, work)
    // The callback goes on after its first await. Without a connection its writes cannot reach the file.
    if (result !== 'stale' && 'error' in result && result.error instanceof PromiseRefused) {
      this.#closeSecond()
      return { error: promiseRefused() }
    }
    return result
  }

  async #start(): Promise<SqliteFile> {
    const { path, clock, busyMs, database } = this.#options
    const db = this.#connect()
    const file = new SqliteFile(db, {
      path,
      clock,
      busyMs,
      announce: this.listeners.announce,
      beforeCommit: passOn,
    })
    try {
      // Ten processes may start at once: the first one that gets the write lock migrates, and the others find it done.
      await file.patiently(() => configure(db))
      const version = await file.read((read) => schemaVersion(read.db, path))
      checkVersion(version, path)
      if (version < SCHEMA_VERSION) this.foundVersion = await file.write((tx) => migrate(tx.db, path))
    } catch (error) {
      if (database === undefined) db.close()
      throw error
    }
    this.#connection = db
    this.#identity = database === undefined ? new FileIdentity(path) : undefined
    // Other processes write in real time.
    this.#others = clock === systemClock ? new OtherWriters(db, clock, this.listeners.announce) : undefined
    return file
  }

  #connect(): Connection {
    const { path, database } = this.#options
    if (database !== undefined) return new Connection(driverOf(database))
    checkPath(path)
    try {
      createPrivately(path)
      return new Connection(openDriver(path))
    } catch (error) {
      throw openError(error, path)
    }
  }

  /** A second connection to the file, or the user's handle if there is one. */
  #transactions(): Connection {
    if (this.#options.database !== undefined && this.#connection !== undefined) return this.#connection
    // A handler may have kept the handle, and closed it or begun a transaction on it.
    if (this.#second?.driver.closed) this.#second = undefined
    else if (this.#second?.driver.inTransaction) this.#closeSecond()
    if (this.#second === undefined) {
      const db = this.#connect()
      try {
        configure(db)
        // The path was opened again: it must still be the same file.
        this.#identity?.check()
      } catch (error) {
        db.close()
        throw error
      }
      this.#second = db
    }
    return this.#second
  }

  #closeSecond(): void {
    const { driver } = this.#second ?? {}
    // libsql may close the handle later, and an open transaction would keep the file locked until then.
    if (driver !== undefined && !driver.closed && driver.inTransaction) driver.exec('rollback')
    if (!driver?.closed) this.#second?.close()
    this.#second = undefined
  }
}
