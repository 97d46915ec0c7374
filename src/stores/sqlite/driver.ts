/**
 * What the store needs of a SQLite driver, and how the drivers of this world give it. Rows come as arrays, in the order
 * of the columns; values are numbers, text or null and nothing else (a boolean makes one of the drivers abort).
 */
export type Value = number | string | null
export type Row = readonly Value[]

export interface Statement {
  run(values: readonly Value[]): { readonly changes: number; readonly lastId: number }
  get(values: readonly Value[]): Row | undefined
  all(values: readonly Value[]): readonly Row[]
}

export interface Driver {
  prepare(sql: string): Statement
  exec(sql: string): void
  close(): void
  /** Whether a transaction is open, where the driver can tell. */
  readonly inTransaction: boolean | undefined
  /** Somebody has closed the handle. One of the drivers aborts the process if it is then used. */
  readonly closed: boolean
  /** What a handler's transaction is given: the driver's own handle. */
  readonly handle: unknown
}

type Info = { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }

/** A handle of better-sqlite3 or of anything that follows it, such as libsql. */
export interface BetterSqliteHandle {
  prepare(sql: string): {
    run(values: readonly Value[]): Info
    get(values: readonly Value[]): unknown
    all(values: readonly Value[]): unknown[]
    raw(on: boolean): unknown
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
      let raw = false
      // Only a statement that gives rows may be asked for them as arrays.
      const rows = () => {
        if (!raw) statement.raw(true)
        raw = true
        return statement
      }
      return {
        run: (values) => infoOf(statement.run(values)),
        get: (values) => rows().get(values) as Row | undefined,
        all: (values) => rows().all(values) as Row[],
      }
    },
  }
}

type Named = Readonly<Record<string, Value>>

/** A `DatabaseSync` of `node:sqlite`. */
export interface NodeSqliteHandle {
  prepare(sql: string): {
    run(...values: (Value | Named)[]): Info
    get(...values: (Value | Named)[]): unknown
    all(...values: (Value | Named)[]): unknown[]
    setReturnArrays?(on: boolean): void
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
      const { text, bind } = byName(sql)
      const statement = handle.prepare(text)
      statement.setReturnArrays?.(true)
      return {
        run: (values) => infoOf(statement.run(...bind(values))),
        get: (values) => arrayOf(statement.get(...bind(values))),
        all: (values) => statement.all(...bind(values)).map((row) => arrayOf(row) ?? []),
      }
    },
  }
}

/** Before 22.16 it does not say so: one that is open refuses another. */
function isWithinTransaction(handle: NodeSqliteHandle): boolean {
  try {
    handle.exec('begin')
  } catch {
    return true
  }
  handle.exec('rollback')
  return false
}

const PARAMETERS = /'[^']*'|--[^\n]*|\?(\d*)/g

/**
 * Before Node 24 a numbered parameter such as `?1` counts as a named one and is not bound by its place. So wherever
 * there is one, all of the statement's get their numbers and are bound by them as names, which is right everywhere.
 */
function byName(sql: string): { text: string; bind: (values: readonly Value[]) => readonly (Value | Named)[] } {
  if (!/\?\d/.test(sql)) return { text: sql, bind: (values) => values }
  const numbers = new Set<number>()
  const text = sql.replace(PARAMETERS, (token, digits?: string) => {
    if (digits === undefined) return token
    const number = digits === '' ? Math.max(0, ...numbers) + 1 : Number(digits)
    numbers.add(number)
    return `?${number}`
  })
  return {
    text,
    bind: (values) => [Object.fromEntries([...numbers].map((number) => [`?${number}`, values[number - 1] ?? null]))],
  }
}

export type SqliteHandle = BetterSqliteHandle | NodeSqliteHandle

export function isHandle(handle: unknown): handle is SqliteHandle {
  const { prepare, exec } = (handle ?? {}) as { prepare?: unknown; exec?: unknown }
  return typeof prepare === 'function' && typeof exec === 'function'
}

/** The driver of a handle that the user made, whichever it is. */
export function driverOf(handle: SqliteHandle): Driver {
  return isNodeSqlite(handle) ? nodeSqlite(handle) : betterSqlite(handle)
}

function isNodeSqlite(handle: SqliteHandle): handle is NodeSqliteHandle {
  return 'isTransaction' in handle || handle.constructor?.name === 'DatabaseSync'
}

/** Before 22.16 rows are always objects, whose members stand in the order of the columns. */
function arrayOf(row: unknown): Row | undefined {
  if (row === undefined || row === null) return undefined
  return Array.isArray(row) ? row : (Object.values(row) as Value[])
}

function infoOf({ changes, lastInsertRowid }: Info): { changes: number; lastId: number } {
  return { changes: Number(changes), lastId: Number(lastInsertRowid) }
}
