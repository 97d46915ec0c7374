/**
 * Checks the options that schedules set for their sink (`toOptions`) against the sink owner's `overrides`.
 *
 *     kafka({ topic: 'events', brokers, overrides: { topic: ['events.*'], headers: ['x-tenant'] } })
 *
 * Schedules come from tenants, and the sink's connection has the rights of its owner. By default a schedule may set
 * only options that are harmless for the type of sink. The owner allows others by a list of texts and patterns
 * (`override-patterns.ts`), or by `true` for any value. Some values are forbidden to all schedules: they would control
 * the broker, or change the meaning of Belfry's own headers.
 *
 * A schedule is checked when it is put, and each of its messages again at delivery. The owner may have narrowed the
 * list since, or a process without the sink may have put the schedule.
 */

import { checkOptions } from '../core/checks/known-options.js'
import { BelfryError, failure, quote } from '../core/errors.js'
import { type Matches, textPatterns } from '../core/names/text-patterns.js'
import type { SinkMessage } from '../core/sink.js'
import { headerPatterns } from './override-patterns.js'

/** Texts and patterns that are allowed; `true` allows any value, `false` none. */
export type Allowed = boolean | readonly string[]

/** The `overrides` of a sink: the allowed values of each option of schedules. `headers` lists names of headers. */
export type OverrideOptions<Name extends string = never> = {
  readonly [Option in Name | 'headers' | 'key']?: Allowed
}

/** Returns the problem of an option's text; undefined if the text is valid. */
export type Rule = (text: string) => string | undefined

export type Headers = Readonly<Record<string, string>>

/** An option of schedules whose value is text. */
export interface Field {
  /** Checks that the transport can carry the value. */
  readonly rule: Rule
  /** The reason why no schedule may set this value, whatever the owner allows. */
  readonly never?: Rule
  /** Whether any value is allowed if the owner names none. */
  readonly isHarmless?: boolean
  readonly patterns?: (allowed: readonly string[]) => Matches
}

export interface HeaderField {
  /** The sink's own headers. A schedule may replace those that the owner lists by their full name. */
  readonly own: Headers
  /** Names that no schedule may set, in addition to `RESERVED`. They are tested in lower case with "-" for "_". */
  readonly reserved?: RegExp
  /** Replaces `headerProblem` for a transport that can carry other headers. */
  readonly problem?: (name: string, value: unknown) => string | undefined
}

export interface OverrideSetup<Name extends string> {
  /** Names the sink in errors: "a NATS sink". */
  readonly where: string
  readonly fields: Readonly<Record<Name, Field>>
  readonly headers?: HeaderField
  /**
   * Whether schedules may choose their key if `overrides` does not mention it. An ordered sink holds messages back by key.
   */
  readonly isKeyHarmless: boolean
}

export interface Overrides<Name extends string> {
  /** The sink's own headers with those of the schedule. */
  readonly headers: Headers
  /** The headers of the schedule alone. */
  readonly given: Headers
  readonly texts: Readonly<Partial<Record<Name, string>>>
}

/** Checks the options of a schedule. `key` is the schedule's own key, if it has one. */
export type ParseOverrides<Name extends string> = (options: unknown, key: string | undefined) => Overrides<Name>

const MOST_HEADERS = 64
const MOST_PATTERNS = 1_000
/** How many of the allowed values an error lists. */
const MOST_SHOWN = 10
/**
 * Headers that no schedule may set, because Belfry or the connection sets them or they hold credentials. They are
 * tested in lower case with "-" for "_", because receivers treat the two alike.
 */
const RESERVED =
  /^(?:(?:belfry|ce|cloudevents|content|nats|webhook)-.*|(?:proxy-)?authorization|(?:set-)?cookie2?|host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect)$/

export function overrideParser<Name extends string>(
  given: OverrideOptions<Name> | undefined,
  { where, fields, headers, isKeyHarmless }: OverrideSetup<Name>,
): ParseOverrides<Name> {
  const names = Object.keys(fields) as Name[]
  const known = headers === undefined ? names : [...names, 'headers']
  const allowed: Readonly<Record<string, Allowed | undefined>> = given ?? {}
  if (given !== undefined) checkOptions(given, [...known, 'key'], `overrides of ${where}`)
  const checks = new Map(names.map((name) => [name, fieldCheck(name, fields[name], allowed[name], where)] as const))
  const checkKey = fieldCheck('key', { rule: () => undefined, isHarmless: isKeyHarmless }, allowed.key, where)
  const mergeHeaders = headers === undefined ? undefined : headerCheck(headers, allowed.headers, where)
  const none: Overrides<Name> = { headers: headers?.own ?? {}, given: {}, texts: {} as Overrides<Name>['texts'] }

  return (options, key) => {
    if (key !== undefined) checkKey(key)
    if (options === undefined || options === null) return none
    checkOptions(options, known, where)
    const set = options as Readonly<Record<string, unknown>>
    const texts: Partial<Record<Name, string>> = {}
    for (const [name, check] of checks) if (set[name] !== undefined) texts[name] = check(set[name])
    return { ...none, texts, ...mergeHeaders?.(set.headers) }
  }
}

/** The key that a message's schedule has chosen. */
export function chosenKey({ key, schedule_id }: SinkMessage): string | undefined {
  return key === schedule_id || schedule_id === undefined ? undefined : key
}

function fieldCheck(name: string, field: Field, allowed: Allowed | undefined, where: string) {
  const { rule, never = () => undefined, isHarmless = false, patterns = textPatterns } = field
  const allows = matcher(allowed ?? isHarmless, name, patterns, where)
  if (Array.isArray(allowed)) for (const pattern of allowed) checkPattern(pattern, field, name, where)
  return (value: unknown): string =>
    located([name], () => {
      const text = checkText(value, rule, name, where)
      const why = never(text)
      if (why !== undefined) {
        const problem = `${name} is ${quote(text)}, which no schedule may set: ${why}`
        throw failure('OVERRIDE_REFUSED', `${where}: ${problem}; use another ${name}`)
      }
      if (allows(text)) return text
      throw refusal(`${name} is ${quote(text)}`, name, text, allowed, where)
    })
}

function headerCheck(
  { own, reserved, problem = headerProblem }: HeaderField,
  allowed: Allowed | undefined,
  where: string,
) {
  const allows = matcher(allowed ?? false, 'headers', headerPatterns, where)
  const listed = new Set(Array.isArray(allowed) ? allowed.map((name) => name.toLowerCase()) : [])
  const ownNames = new Map(Object.keys(own).map((name) => [name.toLowerCase(), name]))

  function checkHeader(name: string, value: unknown): void {
    const wrong = problem(name, value)
    if (wrong !== undefined) throw failure('OPTION_INVALID', `${where}: header ${quote(name)} ${wrong}`)
    const plain = name.toLowerCase().replaceAll('_', '-')
    if (RESERVED.test(plain) || reserved?.test(plain) === true) {
      const why = 'is reserved, and no schedule may set it; remove it from toOptions.headers, or rename it'
      throw failure('OVERRIDE_REFUSED', `${where}: header ${quote(name)} ${why}`)
    }
    if (!allows(name)) throw refusal(`header ${quote(name)} is given`, 'headers', name, allowed, where)
    if (ownNames.has(name.toLowerCase()) && !listed.has(name.toLowerCase())) {
      const advice = `use another name, or have the sink's owner list this one by its full name in overrides.headers`
      throw failure('OVERRIDE_REFUSED', `${where}: header ${quote(name)} is set by the sink itself; ${advice}`)
    }
  }

  return (given: unknown): Pick<Overrides<never>, 'headers' | 'given'> | undefined => {
    if (given === undefined) return undefined
    return located(['headers'], () => {
      const entries = headerEntries(given, where)
      const merged = new Map(Object.entries(own))
      const seen = new Set<string>()
      for (const [name, value] of entries) {
        located(['headers', name], () => checkHeader(name, value))
        const lower = name.toLowerCase()
        if (seen.has(lower)) throw failure('OPTION_INVALID', `${where}: header ${quote(name)} is given twice`)
        seen.add(lower)
        merged.delete(ownNames.get(lower) ?? name)
        merged.set(name, value as string)
      }
      return { headers: Object.fromEntries(merged), given: given as Headers }
    })
  }
}

function matcher(
  allowed: Allowed,
  name: string,
  patterns: (allowed: readonly string[]) => Matches,
  where: string,
): Matches {
  if (typeof allowed === 'boolean') return () => allowed
  const isList = Array.isArray(allowed) && allowed.length <= MOST_PATTERNS
  if (!isList || allowed.some((each) => typeof each !== 'string' || each === '')) {
    const shape = `a list of at most ${MOST_PATTERNS} texts, such as ["events.*"], or true for any value`
    throw failure('OPTION_INVALID', `overrides of ${where}: ${name} is ${quote(allowed)}; it must be ${shape}`)
  }
  return patterns(allowed)
}

/** Refuses a pattern that no valid value matches, because it is a mistake of the owner. */
function checkPattern(pattern: string, { rule, never, patterns }: Field, name: string, where: string): void {
  if (patterns !== undefined) return
  const sample = pattern.replaceAll('*', 'x')
  const problem = rule(sample) ?? never?.(sample)
  if (problem === undefined) return
  throw failure('OPTION_INVALID', `overrides of ${where}: ${name} allows ${quote(pattern)}; ${problem}`)
}

function refusal(
  what: string,
  option: string,
  value: string,
  allowed: Allowed | undefined,
  where: string,
): BelfryError {
  const list = Array.isArray(allowed) ? allowed : []
  const shown = list.slice(0, MOST_SHOWN).map(quote).join(', ')
  const rest = list.length > MOST_SHOWN ? ` and ${list.length - MOST_SHOWN} more` : ''
  const rule = list.length === 0 ? `schedules may not set ${option}` : `schedules may set ${shown}${rest}`
  const advice = `remove it from toOptions, or have the sink's owner allow it: overrides: { ${option}: [${quote(value)}] }`
  return failure('OVERRIDE_REFUSED', `${where}: ${what}; ${rule}: ${advice}`)
}

export function checkText(value: unknown, rule: Rule, name: string, where: string): string {
  const problem = typeof value === 'string' ? (controlProblem(value) ?? rule(value)) : 'it must be text'
  if (problem === undefined) return value as string
  throw failure('OPTION_INVALID', `${where}: ${name} is ${quote(value)}; ${problem}`)
}

function controlProblem(text: string): string | undefined {
  return /[\p{Cc}\p{Cs}]/u.test(text) ? 'it must not hold control characters or halves of a character' : undefined
}

/** The headers of a sink itself: names that every transport can carry, and values without line breaks. */
export function checkHeaders(headers: unknown, where: string): Headers {
  if (headers === undefined) return {}
  for (const [name, value] of headerEntries(headers, where)) {
    const problem = headerProblem(name, value)
    if (problem !== undefined) throw failure('OPTION_INVALID', `${where}: header ${quote(name)} ${problem}`)
  }
  return headers as Headers
}

function headerEntries(headers: unknown, where: string): [string, unknown][] {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw failure('OPTION_INVALID', `${where}: headers is ${quote(headers)}; it must be an object of texts`)
  }
  const entries = Object.entries(headers)
  if (entries.length <= MOST_HEADERS) return entries
  const problem = `headers has ${entries.length} entries; at most ${MOST_HEADERS} are allowed`
  throw failure('OPTION_INVALID', `${where}: ${problem}`)
}

function headerProblem(name: string, value: unknown): string | undefined {
  if (!/^[\w.-]{1,128}$/.test(name) || /^(belfry-|nats-|ce[-_])/i.test(name)) {
    return 'is not allowed; use letters, digits, ".", "_" and "-", and no name that begins with belfry-, ce- or nats-'
  }
  // The message omits the value, which may be a secret.
  return typeof value !== 'string' || /[\r\n\0]/.test(value) ? 'must be text of one line' : undefined
}

/** Adds the path within `toOptions` to an error. */
function located<Result>(path: readonly string[], work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof BelfryError) error.path ??= path
    throw error
  }
}
