/**
 * `DatabaseSync` of `node:sqlite`. A runtime without it gets a substitute over libsql with the limits of the oldest
 * version, in Node 22.5: rows are objects, the handle does not report whether a transaction is open, and a numbered
 * parameter (`?1`) must be bound by name.
 */
import { createRequire } from 'node:module'
import type { BetterSqliteHandle, NodeSqliteHandle } from '../../src/stores/sqlite/index.js'

type Value = number | string | null
type Argument = Value | Readonly<Record<string, Value>>

const require = createRequire(import.meta.url)

export function databaseSync(path: string): NodeSqliteHandle {
  return process.versions.sqlite === undefined
    ? new DatabaseSync(path)
    : new (require('node:sqlite') as { DatabaseSync: new (path: string) => NodeSqliteHandle }).DatabaseSync(path)
}

class DatabaseSync implements NodeSqliteHandle {
  readonly #db: BetterSqliteHandle

  constructor(path: string) {
    const Database = require('libsql') as new (path: string) => BetterSqliteHandle
    this.#db = new Database(path)
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  close(): void {
    this.#db.close()
  }

  prepare(sql: string) {
    const statement = this.#db.prepare(sql)
    const names = parameterNames(sql)
    return {
      run: (...args: Argument[]) => statement.run(bound(names, args)),
      get: (...args: Argument[]) => statement.get(bound(names, args)),
      all: (...args: Argument[]) => statement.all(bound(names, args)),
    }
  }
}

/** The name of each parameter by its number; undefined for an unnamed one. */
function parameterNames(sql: string): (string | undefined)[] {
  const names: (string | undefined)[] = []
  for (const [token, digits] of sql.matchAll(/'[^']*'|--[^\n]*|\?(\d*)/g)) {
    if (digits === undefined) continue
    const at = digits === '' ? names.length : Number(digits) - 1
    while (names.length <= at) names.push(undefined)
    if (digits !== '') names[at] = token
  }
  return names
}

function bound(names: readonly (string | undefined)[], args: readonly Argument[]): Value[] {
  const values: Value[] = names.map(() => null)
  const nameless = names.flatMap((name, at) => (name === undefined ? [at] : []))
  for (const arg of args) {
    if (typeof arg === 'object' && arg !== null) {
      for (const [name, value] of Object.entries(arg)) {
        if (!names.includes(name)) throw new Error(`Unknown named parameter '${name}'`)
        values[names.indexOf(name)] = value
      }
    } else {
      const at = nameless.shift()
      if (at === undefined) throw new Error('column index out of range')
      values[at] = arg
    }
  }
  return values
}
