/** Checks the delivery options of a schedule (`toOptions`), and the same options of a sink. */

import { checkOptions } from '../core/checks/known-options.js'
import { failure, quote } from '../core/errors.js'

/** Returns what is wrong with an option's text; undefined if it is valid. */
export type Rule = (text: string) => string | undefined

export type Headers = Readonly<Record<string, string>>

export interface Overrides {
  readonly headers: Headers
  /** The given options by name. */
  readonly texts: Readonly<Record<string, string>>
}

const NONE: Overrides = { headers: {}, texts: {} }
const MOST_HEADERS = 64

/** A parser for the options of a schedule: texts by their rules, and headers. */
export function overrides(rules: Readonly<Record<string, Rule>>, where: string): (options: unknown) => Overrides {
  const known = [...Object.keys(rules), 'headers']
  return (options) => {
    if (options === undefined || options === null) return NONE
    checkOptions(options, known, where)
    const given = options as Record<string, unknown>
    const texts: Record<string, string> = {}
    for (const [name, rule] of Object.entries(rules)) {
      if (given[name] !== undefined) texts[name] = checkText(given[name], rule, name, where)
    }
    return { texts, headers: checkHeaders(given.headers, where) }
  }
}

export function checkText(value: unknown, rule: Rule, name: string, where: string): string {
  const problem = typeof value === 'string' ? rule(value) : 'it must be text'
  if (problem === undefined) return value as string
  throw failure('OPTION_INVALID', `${where}: ${name} is ${quote(value)}; ${problem}`)
}

/** Allows header names that every transport can carry, and values without line breaks. */
export function checkHeaders(headers: unknown, where: string): Headers {
  if (headers === undefined) return {}
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw failure('OPTION_INVALID', `${where}: headers is ${quote(headers)}; it must be an object of texts`)
  }
  const entries = Object.entries(headers)
  if (entries.length > MOST_HEADERS) {
    throw failure(
      'OPTION_INVALID',
      `${where}: headers has ${entries.length} entries; at most ${MOST_HEADERS} are allowed`,
    )
  }
  for (const [name, value] of entries) {
    if (!/^[\w.-]{1,128}$/.test(name) || /^(belfry-|nats-|ce[-_])/i.test(name)) {
      throw failure(
        'OPTION_INVALID',
        `${where}: header ${quote(name)} is not allowed; use letters, digits, ".", "_" and "-", and no name that begins with belfry-, ce- or nats-`,
      )
    }
    if (typeof value !== 'string' || /[\r\n\0]/.test(value)) {
      // Without the value: it may be a secret.
      throw failure('OPTION_INVALID', `${where}: header ${quote(name)} must be text of one line`)
    }
  }
  return headers as Headers
}
