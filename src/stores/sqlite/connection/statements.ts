/**
 * SQL statements as functions. A `.sql` file holds the statements of one operation, each under a line with its name:
 *
 *     -- statement: firstWaiter
 *     select holder, until from belfry_waiters where name = :name and until > :now order by place limit 1;
 *
 * TypeScript declares each of them once, with the names of what goes in and what comes out, and calls it:
 *
 *     const firstWaiter = row<{ name: string }, { holder: string; until: number }>(source, 'firstWaiter')
 *     const waiter = firstWaiter(tx, { name: 'invoices' })
 *
 * `:now` is always the time of the operation, and is not given. Where a whole row is written, parameters have the names of the
 * columns (`:key_limit`); elsewhere they have the names of values in TypeScript (`:leastToken`). A name that is in the file and
 * declared nowhere fails a test, as does a statement that does not compile against a fresh schema.
 */
import type { Value } from './driver.js'
import type { On } from './tx.js'

/** Parameters by name. */
export type Given = Readonly<Record<string, Value>>

/** A statement that takes nothing. */
export type Nothing = Readonly<Record<never, never>>

export interface Statement {
  readonly name: string
  /** With a `?` for each parameter: every driver binds those in order. */
  readonly sql: string
  /** The names of the parameters, in order and as often as they occur. */
  readonly parameters: readonly string[]
}

type Call<Parameters extends Given, Result> = (on: On, given: Parameters) => Result

/** A statement that returns rows. */
export function rows<Parameters extends Given, Row>(source: string, name: string): Call<Parameters, readonly Row[]> {
  return rowsOf(statement(source, name))
}

export function rowsOf<Parameters extends Given, Row>(statement: Statement): Call<Parameters, readonly Row[]> {
  return (on, given) => on.db.prepare(statement.sql).all(valuesOf(statement, on, given)) as readonly Row[]
}

/**
 * A statement that returns many rows of many columns: each row comes as one JSON object of `columns`. libsql takes several times
 * as long to hand over each value by itself.
 */
export function jsonRows<Parameters extends Given, Row>(
  source: string,
  name: string,
  columns: readonly (keyof Row & string)[],
): Call<Parameters, readonly Row[]> {
  return jsonRowsOf(statement(source, name), columns)
}

export function jsonRowsOf<Parameters extends Given, Row>(
  statement: Statement,
  columns: readonly (keyof Row & string)[],
): Call<Parameters, readonly Row[]> {
  const members = columns.map((column) => `'${column}', ${column}`).join(', ')
  const sql = `select json_object(${members}) as json from (${statement.sql})`
  const select = rowsOf<Parameters, { json: string }>({ ...statement, sql })
  return (on, given) => select(on, given).map(({ json }) => JSON.parse(json) as Row)
}

/** A statement that returns one row, or none. */
export function row<Parameters extends Given, Row>(source: string, name: string): Call<Parameters, Row | undefined> {
  const declared = statement(source, name)
  return (on, given) => on.db.prepare(declared.sql).get(valuesOf(declared, on, given)) as Row | undefined
}

/** A statement that returns how many rows it has changed. */
export function change<Parameters extends Given = Nothing>(source: string, name: string): Call<Parameters, number> {
  const declared = statement(source, name)
  return (on, given) => on.db.prepare(declared.sql).run(valuesOf(declared, on, given))
}

/** Every statement that was declared so far, for the test that compiles them. */
export const declaredStatements: Statement[] = []

export function statement(source: string, name: string): Statement {
  const text = statementTexts(source).get(name)
  if (text === undefined) throw new Error(`there is no statement ${name} in this file:\n${source}`)
  const declared = compile(name, text)
  declaredStatements.push(declared)
  return declared
}

/** The statements of a file by their names. */
export function statementTexts(source: string): ReadonlyMap<string, string> {
  const [, ...parts] = source.split(/^-- statement: /m)
  return new Map(
    parts.map((part) => {
      const end = part.indexOf('\n')
      return [part.slice(0, end).trim(), part.slice(end + 1)]
    }),
  )
}

/** Marks where a list adds its conditions to a statement. */
const CONDITIONS = '/* and conditions */'

/** Adds the conditions of a list's optional filters to its statement. All of them must hold. */
export function withConditions({ name, sql, parameters }: Statement, conditions: readonly string[]): Statement {
  const [before = '', after = ''] = sql.split(CONDITIONS)
  const added = compile(name, conditions.map((condition) => ` and ${condition}`).join(''))
  const at = before.split('?').length - 1
  return {
    name,
    sql: `${before} ${added.sql}${after}`,
    parameters: [...parameters.slice(0, at), ...added.parameters, ...parameters.slice(at)],
  }
}

const TOKENS = /'[^']*'|--[^\n]*|:([a-z]\w*)/gi

function compile(name: string, text: string): Statement {
  const parameters: string[] = []
  const sql = text.replace(TOKENS, (token, parameter?: string) => {
    if (parameter === undefined) return token.startsWith('--') ? '' : token
    parameters.push(parameter)
    return '?'
  })
  return { name, sql: sql.trim().replace(/;$/, ''), parameters }
}

/** The values of a statement's parameters, in order. SQLite would read a missing one as null; here it is an error. */
function valuesOf({ name, parameters }: Statement, { now }: On, given: Given): Value[] {
  return parameters.map((parameter) => {
    const value = parameter === 'now' ? now : given[parameter]
    if (value === undefined) throw new Error(`statement ${name} needs a value for :${parameter}`)
    return value
  })
}
