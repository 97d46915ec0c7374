import { resolve } from 'node:path'
import { checkOptions } from '../../core/checks/known-options.js'
import { type Clock, systemClock } from '../../core/clock.js'
import { failure, quote } from '../../core/errors.js'
import { isHandle, type SqliteHandle } from './connection/driver.js'

export type SqliteOptions = {
  /** The store's clock; the system's by default. All processes that share the file must have the same. */
  readonly clock?: Clock
  /** For how many milliseconds an operation tries again while another process writes. Default 5,000. */
  readonly busyMs?: number
} & (
  | { readonly path: string; readonly database?: undefined }
  /** A handle of better-sqlite3, libsql or `node:sqlite`, for Belfry alone: it sets pragmas on it. */
  | { readonly database: SqliteHandle; readonly path?: undefined }
)

export interface ParsedSqliteOptions {
  /** The absolute path; with a handle, a phrase for error messages. */
  readonly path: string
  readonly database: SqliteHandle | undefined
  readonly clock: Clock
  readonly busyMs: number
}

const BUSY_MS = 5_000

export function parseSqliteOptions(options: SqliteOptions): ParsedSqliteOptions {
  if (typeof options === 'string') throw invalid(`give an object, as in sqlite({ path: ${quote(options)} })`)
  checkOptions(options, ['path', 'database', 'clock', 'busyMs'], 'sqlite()')
  const { path, database, clock = systemClock, busyMs = BUSY_MS } = options
  if ((path === undefined) === (database === undefined)) {
    throw invalid(path === undefined ? 'give the path of a file, or a database' : 'give a path or a database, not both')
  }
  if (!(typeof busyMs === 'number' && busyMs >= 0 && busyMs < Number.POSITIVE_INFINITY)) {
    throw invalid(`busyMs is ${quote(busyMs)}; it must be a number of milliseconds, 0 or more`)
  }
  if (!isClock(clock)) throw invalid('clock must have now(), monotonic() and after()')
  if (path !== undefined) return { path: checkedPath(path), database: undefined, clock, busyMs }
  if (isHandle(database)) return { path: 'of the given handle', database, clock, busyMs }
  throw invalid(`database must be a handle of better-sqlite3, libsql or node:sqlite, not ${quote(database)}`)
}

function checkedPath(path: unknown): string {
  if (typeof path !== 'string') throw invalid(`path is ${quote(path)}; it must be text that names a file`)
  if (path.trim() === '') throw invalid(`path is ${quote(path)}; it must name a file`)
  if (path.includes('\0')) throw invalid(`path is ${quote(path)}; it holds a zero character`)
  if (path === ':memory:') throw invalid('path is ":memory:"; for a store in memory use memory() of belfry/memory')
  // A single letter before the colon is a drive of Windows, not the scheme of a URL.
  if (/^[a-z][a-z0-9+.-]+:/i.test(path)) {
    throw invalid(`path is ${quote(path)}; it must be the path of a local file, not a URL`)
  }
  return resolve(path)
}

function isClock({ now, monotonic, after }: Partial<Clock>): boolean {
  return [now, monotonic, after].every((method) => typeof method === 'function')
}

function invalid(problem: string) {
  return failure('OPTION_INVALID', `sqlite(): ${problem}`)
}
