/**
 * One interface for all SQLite drivers: `node:sqlite`, libsql, and any handle with the calls of better-sqlite3. Parameters are
 * numbers, text or null, never booleans: one of the drivers aborts the process on a boolean. A row is an object by column name.
 */
import { createRequire } from 'node:module'
import { failure } from '../../../core/errors.js'

export type Value = number | string | null
export type Row = Readonly<Record<string, Value>>

export interface PreparedStatement {
  /** Returns the number of changed rows. */
  run(values: readonly Value[]): number
  get(values: readonly Value[]): Row | undefined
  all(values: readonly Value[]): readonly Row[]
}

export interface Driver {
  prepare(sql: string): PreparedStatement
  exec(sql: string): void
  close(): void
  /** Whether a transaction is open; undefined when the driver cannot tell. */
  readonly inTransaction: boolean | undefined
  /** Whether the handle was closed. One of the drivers aborts the process when a closed handle is used. */
  readonly closed: boolean
  /** The driver's own handle, which a handler's transaction gets. */
  readonly handle: unknown
}

type Info = { readonly changes: number | bigint }

/** A handle of better-sqlite3 or of anything that follows it, such as libsql. */
export interface BetterSqliteHandle {
  prepare(sql: string): {
    run(values: readonly Value[]): Info
    get(values: readonly Value[]): unknown
    all(values: readonly Value[]): unknown[]
    raw(on: boolean): unknown
    columns(): readonly { readonly name: string }[]
  }
  exec(sql: string): unknown
  close(): unknown
  readonly inTransaction?: boolean
  readonly open?: boolean
}

export function betterSqlite(handle: BetterSqliteHandle): Driver {
  return {
    handle,
    exec: (sql) => void handle.exec(sql),
    close: () => void handle.close(),
    get inTransaction() {
      return handle.inTransaction
    },
    get closed() {
      return handle.open === false
    },
    prepare(sql) {
      const statement = handle.prepare(sql)
      let columns: readonly string[] | undefined
      // libsql reads rows as arrays twice as fast as rows as objects, to which it adds a member. Only a statement that returns
      // rows has this mode, so the first read sets it.
      const asArrays = () => {
        if (columns === undefined) statement.raw(true)
        columns ??= statement.columns().map(({ name }) => name)
        return statement
      }
      const named = (row: unknown): Row => {
        const object: Record<string, Value> = {}
        const values = row as readonly Value[]
        let at = 0
        for (const name of columns ?? []) {
          object[name] = values[at] ?? null
          at += 1
        }
        return object
      }
      return {
        run: (values) => Number(statement.run(values).changes),
        get: (values) => {
          const row = asArrays().get(values)
          return row === undefined ? undefined : named(row)
        },
        all: (values) => asArrays().all(values).map(named),
      }
    },
  }
}

/** A `DatabaseSync` of `node:sqlite`. */
export interface NodeSqliteHandle {
  prepare(sql: string): {
    run(...values: Value[]): Info
    get(...values: Value[]): unknown
    all(...values: Value[]): unknown[]
  }
  exec(sql: string): void
  close(): void
  readonly isTransaction?: boolean
  readonly isOpen?: boolean
}

export function nodeSqlite(handle: NodeSqliteHandle): Driver {
  return {
    handle,
    exec: (sql) => handle.exec(sql),
    close: () => handle.close(),
    get inTransaction() {
      return handle.isTransaction ?? isWithinTransaction(handle)
    },
    get closed() {
      return handle.isOpen === false
    },
    prepare(sql) {
      const statement = handle.prepare(sql)
      return {
        run: (values) => Number(statement.run(...values).changes),
        get: (values) => (statement.get(...values) ?? undefined) as Row | undefined,
        all: (values) => statement.all(...values) as Row[],
      }
    },
  }
}

/** Before Node 22.16 the handle does not say whether a transaction is open. `begin` fails inside one. */
function isWithinTransaction(handle: NodeSqliteHandle): boolean {
  try {
    handle.exec('begin')
  } catch {
    return true
  }
  handle.exec('rollback')
  return false
}

/** What the handles have in common, for handlers whose store has a path. */
export interface SqliteTransaction {
  prepare(sql: string): {
    run(...values: readonly unknown[]): Info
    get(...values: readonly unknown[]): unknown
    all(...values: readonly unknown[]): unknown[]
  }
  exec(sql: string): unknown
}

export type SqliteHandle = BetterSqliteHandle | NodeSqliteHandle

export function isHandle(handle: unknown): handle is SqliteHandle {
  const { prepare, exec } = (handle ?? {}) as { prepare?: unknown; exec?: unknown }
  return typeof prepare === 'function' && typeof exec === 'function'
}

/** The driver for a handle that the user made. */
export function driverOf(handle: SqliteHandle): Driver {
  return isNodeSqlite(handle) ? nodeSqlite(handle) : betterSqlite(handle)
}

function isNodeSqlite(handle: SqliteHandle): handle is NodeSqliteHandle {
  return 'isTransaction' in handle || handle.constructor?.name === 'DatabaseSync'
}

/** Loads a module of the runtime or of a package, or throws. */
export type Load = (module: string) => unknown

const load: Load = createRequire(import.meta.url)

type NodeSqlite = { readonly DatabaseSync: new (path: string) => NodeSqliteHandle }
type Libsql = new (path: string) => BetterSqliteHandle

/** Opens a file with `node:sqlite` where the runtime has it, else with libsql. */
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
