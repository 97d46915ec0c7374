/** A connection to the file: opened with the runtime's own SQLite or libsql, its statements prepared once and kept. */
import { createRequire } from 'node:module'
import { failure } from '../../core/errors.js'
import {
  type BetterSqliteHandle,
  betterSqlite,
  type Driver,
  type NodeSqliteHandle,
  nodeSqlite,
  type Row,
  type Statement,
  type Value,
} from './driver.js'

export class Connection {
  readonly driver: Driver
  readonly #statements = new Map<string, Statement>()

  constructor(driver: Driver) {
    this.driver = driver
  }

  exec(sql: string): void {
    this.driver.exec(sql)
  }

  /**
   * Begins a write transaction, or throws that the file is busy. Not prepared: libsql leaves a prepared begin that met a
   * busy file unfinished, and with it what later reads see stands still.
   */
  begin(): void {
    this.driver.exec('begin immediate')
  }

  /** Answers how many rows were changed. */
  run(sql: string, ...values: Value[]): number {
    return this.#statement(sql).run(values).changes
  }

  /** Answers the new row's number, or undefined when none was inserted. */
  insert(sql: string, ...values: Value[]): number | undefined {
    const { changes, lastId } = this.#statement(sql).run(values)
    return changes === 0 ? undefined : lastId
  }

  /** The caller's type says what the statement beside it selects. */
  get<Result extends Row>(sql: string, ...values: Value[]): Result | undefined {
    return this.#statement(sql).get(values) as Result | undefined
  }

  all<Result extends Row>(sql: string, ...values: Value[]): readonly Result[] {
    return this.#statement(sql).all(values) as readonly Result[]
  }

  /**
   * Closes for good. What is in the log goes into the file first, if nobody else is at it: libsql keeps the log open
   * until its statements are collected, and a file is then copied or moved without it.
   */
  finish(): void {
    try {
      this.driver.exec('pragma wal_checkpoint(truncate)')
    } catch {
      // Others are at it, and will do it.
    }
    this.close()
  }

  close(): void {
    this.#statements.clear()
    this.driver.close()
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.driver.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }
}

/** Waits of SQLite itself would block the event loop: a busy file is waited for outside, by timers. */
const PRAGMAS = [
  'busy_timeout = 0',
  'journal_mode = WAL',
  'synchronous = FULL',
  // Enough for the inner pages of every index, so that writing at random places reads little.
  'cache_size = -16000',
  // 8 MB: larger checkpoints are rarer, and one still takes milliseconds.
  'wal_autocheckpoint = 2000',
]

export function configure(db: Connection): void {
  for (const pragma of PRAGMAS) db.exec(`pragma ${pragma}`)
}

/** Loads a module of the runtime or of the user's, or throws that it is not there. */
export type Load = (module: string) => unknown

const load: Load = createRequire(import.meta.url)

type NodeSqlite = { readonly DatabaseSync: new (path: string) => NodeSqliteHandle }
type Libsql = new (path: string) => BetterSqliteHandle

/** `node:sqlite` where the runtime has it, else libsql. */
export function openDriver(path: string, from: Load = load): Driver {
  const runtime = tryLoad<NodeSqlite>(from, 'node:sqlite')
  if ('loaded' in runtime) return nodeSqlite(new runtime.loaded.DatabaseSync(path))
  const libsql = tryLoad<Libsql>(from, 'libsql')
  if ('loaded' in libsql) return betterSqlite(new libsql.loaded(path))
  throw failure(
    'UNSUPPORTED',
    'no SQLite driver: use Node 22.5 or newer, or `npm install libsql`, or pass { database } with a better-sqlite3 handle',
    { cause: libsql.error },
  )
}

function tryLoad<Module>(from: Load, module: string): { readonly loaded: Module } | { readonly error: unknown } {
  try {
    return { loaded: from(module) as Module }
  } catch (error) {
    return { error }
  }
}
