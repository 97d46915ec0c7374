/** A connection to the file. It prepares each statement once and keeps it. */
import type { Driver, PreparedStatement } from './driver.js'

export class Connection {
  readonly driver: Driver
  readonly #prepared = new Map<string, PreparedStatement>()

  constructor(driver: Driver) {
    this.driver = driver
  }

  exec(sql: string): void {
    this.driver.exec(sql)
  }

  /**
   * Begins a write transaction, or throws when the file is busy. The statement is not prepared: libsql does not reset a prepared
   * `begin` that failed on a busy file, and later reads on the connection then see old data.
   */
  begin(): void {
    this.driver.exec('begin immediate')
  }

  /** The file as SQLite names it; empty for a database in memory. */
  fileName(): string {
    return String(this.driver.prepare("select file from pragma_database_list where name = 'main'").get([])?.file ?? '')
  }

  /**
   * Moves the log into the file, then closes the connection. libsql keeps the log open until its statements are
   * garbage-collected, and a copy of the file would lack what is still in the log.
   */
  finish(): void {
    try {
      this.driver.exec('pragma wal_checkpoint(truncate)')
    } catch {
      // Other processes use the file: the last one that closes it moves the log.
    }
    this.close()
  }

  close(): void {
    this.#prepared.clear()
    this.driver.close()
  }

  /** The statement, prepared at its first use. */
  prepare(sql: string): PreparedStatement {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const prepared = this.driver.prepare(sql)
    this.#prepared.set(sql, prepared)
    return prepared
  }
}

const PRAGMAS = [
  // SQLite's own wait would block the event loop. `file.ts` tries a busy file again by timers.
  'busy_timeout = 0',
  'journal_mode = WAL',
  'synchronous = FULL',
  // Enough for the inner pages of every index, so that writing at random places reads little.
  'cache_size = -16000',
  // 8 MB: checkpoints are rare, and each takes only milliseconds.
  'wal_autocheckpoint = 2000',
]

export function configure(db: Connection): void {
  for (const pragma of PRAGMAS) db.exec(`pragma ${pragma}`)
}
