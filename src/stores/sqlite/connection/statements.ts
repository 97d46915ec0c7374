/**
 * SQL statements as typed values. A `.sql` file holds the statements of one operation, each under a line with its name:
 *
 *     -- statement: firstWaiter
 *     select holder, until from belfry_waiters where name = :name order by place limit 1;
 *
 * TypeScript declares each of them once, with the names of what goes in and what comes out:
 *
 *     const firstWaiter = statement<{ name: string }, { holder: string; until: number }>(source, 'firstWaiter')
 *
 * A parameter has the name of the value in TypeScript (`:readyAt`), a column has its name in the table (`ready_at`). A name
 * that is in the file and declared nowhere fails a test, as does a statement that does not compile against a fresh schema.
 */
import type { Value } from './driver.js'

/** Parameters by name. */
export type Given = Readonly<Record<string, Value>>

export interface Statement<Parameters extends Given, Row> {
  readonly name: string
  /** With a `?` for each parameter: every driver binds those in order. */
  readonly sql: string
  /** The names of the parameters, in order and as often as they occur. */
  readonly parameters: readonly string[]
  /** Never set: it carries the types. */
  readonly types?: readonly [Parameters, Row]
}

/** Every statement that was declared so far, for the test that compiles them. */
export const declaredStatements: Statement<Given, unknown>[] = []

/** A statement that takes nothing. */
export type Nothing = Readonly<Record<never, never>>

export function statement<Parameters extends Given = Nothing, Row = never>(
  source: string,
  name: string,
): Statement<Parameters, Row> {
  const text = statementTexts(source).get(name)
  if (text === undefined) throw new Error(`there is no statement ${name} in this file:\n${source}`)
  const declared = compile<Parameters, Row>(name, text)
  declaredStatements.push(declared as Statement<Given, unknown>)
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
export function withConditions<Parameters extends Given, Row>(
  { name, sql, parameters }: Statement<Given, Row>,
  conditions: readonly string[],
): Statement<Parameters, Row> {
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

function compile<Parameters extends Given, Row>(name: string, text: string): Statement<Parameters, Row> {
  const parameters: string[] = []
  const sql = text.replace(TOKENS, (token, parameter?: string) => {
    if (parameter === undefined) return token.startsWith('--') ? '' : token
    parameters.push(parameter)
    return '?'
  })
  return { name, sql: sql.trim().replace(/;$/, ''), parameters }
}

/** The values of a statement's parameters, in order. SQLite would read a missing one as null; here it is an error. */
export function valuesOf(
  { name, parameters }: Pick<Statement<Given, unknown>, 'name' | 'parameters'>,
  given: Given,
): Value[] {
  return parameters.map((parameter) => {
    const value = given[parameter]
    if (value === undefined) throw new Error(`statement ${name} needs a value for :${parameter}`)
    return value
  })
}
