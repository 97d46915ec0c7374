/**
 * Parses the syntax that all fields of a cron expression share: lists of values, ranges and steps. Every error names
 * the field, the value and the position.
 */
import { MAX_YEAR, MIN_YEAR } from '../calendar.js'
import { quote, timeError } from '../error.js'

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

export interface FieldRule {
  readonly name: string
  readonly min: number
  readonly max: number
  readonly names?: readonly string[]
  readonly hint?: string
}

export const SECOND: FieldRule = { name: 'second', min: 0, max: 59 }
export const MINUTE: FieldRule = { name: 'minute', min: 0, max: 59 }
export const HOUR: FieldRule = { name: 'hour', min: 0, max: 23 }
export const MONTH_DAY: FieldRule = { name: 'day of month', min: 1, max: 31, hint: 'L, L-3, LW, 15W' }
export const MONTH: FieldRule = { name: 'month', min: 1, max: 12, names: MONTHS, hint: 'JAN–DEC' }
export const WEEKDAY: FieldRule = {
  name: 'day of week',
  min: 0,
  max: 7,
  names: WEEKDAYS,
  hint: 'SUN–SAT, FRI#2, FRI#L, +MON',
}
export const YEAR: FieldRule = { name: 'year', min: MIN_YEAR, max: MAX_YEAR }

/** One field of the expression, and its position for error messages. */
export interface Field {
  readonly rule: FieldRule
  /** In upper case. */
  readonly text: string
  /** The text as it was written, for error messages. */
  readonly given: string
  readonly number: number
  readonly at: number
}

interface Range {
  readonly from: number
  readonly to: number
  readonly step: number
}

export function readSixty(field: Field): { low: number; high: number } {
  let low = 0
  let high = 0
  for (const range of readRanges(field)) {
    eachValue(range, field.rule, (value) => {
      if (value < 32) low |= 1 << value
      else high |= 1 << (value - 32)
    })
  }
  return { low, high }
}

export function readMask(field: Field): number {
  let mask = 0
  for (const range of readRanges(field)) eachValue(range, field.rule, (value) => (mask |= 1 << value))
  return mask
}

export function readYears(field: Field): Int16Array {
  return Int16Array.from(readRanges(field).flatMap(({ from, to, step }) => [from, to, step]))
}

interface Entry {
  readonly text: string
  readonly at: number
}

export function entries(field: Field): Entry[] {
  if (!field.text.includes(',')) return [{ text: field.text, at: 0 }]
  let at = 0
  return field.text.split(',').map((text) => {
    if (text === '') throw bad(field, at, 'an entry is missing beside a comma')
    const entry = { text, at }
    at += text.length + 1
    return entry
  })
}

function readRanges(field: Field): Range[] {
  return entries(field).map(({ text, at }) => readRange(field, text, at))
}

export function readRange(field: Field, text: string, at: number): Range {
  const slash = text.indexOf('/')
  const body = slash < 0 ? text : text.slice(0, slash)
  const dash = body.indexOf('-')
  const { min, max } = field.rule
  if (slash >= 0 && body !== '*' && dash < 0) {
    const start = body === '' ? min : body
    throw bad(
      field,
      at,
      `${asGiven(field, text, at)}: a step needs "*" or a range before it, such as "${start}-${max}/${text.slice(slash + 1)}"`,
    )
  }
  const step = slash < 0 ? 1 : readStep(field, text.slice(slash + 1), at + slash + 1)
  if (dash === 0) throw bad(field, at, `${asGiven(field, text, at)} is not understood; ${hintFor(field, text)}`)
  // Steps of years count from year 0, although the calendar begins at 1: `*/2` matches the even years, `*/4` matches
  // 2024.
  if (body === '*' && field.rule === YEAR) return { from: step, to: max, step }
  if (body === '*') return { from: min, to: field.rule === WEEKDAY ? 6 : max, step }
  const from = readValue(field, dash < 0 ? body : body.slice(0, dash), at)
  if (dash < 0) return { from, to: from, step }
  const to = readValue(field, body.slice(dash + 1), at + dash + 1)
  if (from > to && field.rule === YEAR) {
    throw range(field, at, `${from}-${to} runs backwards: years do not wrap around`)
  }
  return { from, to, step }
}

/** Calls back for every value of a range. A range that runs backwards wraps around (`22-2`, `FRI-MON`). */
export function eachValue({ from, to, step }: Range, rule: FieldRule, visit: (value: number) => void): void {
  const lap = lapOf(rule)
  const last = to < from ? to + lap : to
  for (let value = from; value <= last; value += step) visit(((value - rule.min) % lap) + rule.min)
}

/** How many values a field has. A weekday field has 7, although it accepts 0 to 7: 0 and 7 are both Sunday. */
function lapOf(rule: FieldRule): number {
  return rule === WEEKDAY ? 7 : rule.max - rule.min + 1
}

function readStep(field: Field, text: string, at: number): number {
  const step = readNumber(text)
  if (step === undefined) throw bad(field, at, `step ${asGiven(field, text, at)} is not a number`)
  const most = lapOf(field.rule)
  if (step < 1 || step > most) throw range(field, at, `step ${step} is out of range 1–${most}`)
  return step
}

export function readValue(field: Field, text: string, at: number): number {
  const { min, max, names } = field.rule
  const named = names?.indexOf(text) ?? -1
  if (named >= 0) return named + min
  const value = readNumber(text)
  if (value === undefined)
    throw bad(field, at, `${asGiven(field, text, at)} is not understood; ${hintFor(field, text)}`)
  if (value < min || value > max) throw range(field, at, `${value} is out of range ${min}–${max}`)
  return value
}

/** Reads up to nine plain digits. Any other text is not a number. */
export function readNumber(text: string): number | undefined {
  if (text.length === 0 || text.length > 9) return undefined
  let value = 0
  for (let at = 0; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) return undefined
    value = value * 10 + digit
  }
  return value
}

/** How to write what was probably meant, or what is allowed. */
function hintFor({ rule }: Field, text: string): string {
  const short = rule.names?.find((name) => text.length > 3 && text.startsWith(name))
  if (short !== undefined) return `names have three letters: write ${short}`
  if (rule === MONTH_DAY && text.startsWith('-')) return 'days from the end are L (the last), L-1, L-2 and so on'
  if (rule === MONTH_DAY && text === 'L') return 'a range ends in a number: 29-31 stops at the last day of each month'
  return `allowed: ${allowed(rule)}`
}

/** Part of a field as it was written, quoted. */
export function asGiven(field: Field, text: string, at: number): string {
  return quote(field.given.slice(at, at + text.length))
}

function allowed({ min, max, hint }: FieldRule): string {
  return `${min}–${max}, *, lists, ranges, steps${hint === undefined ? '' : `, ${hint}`}`
}

export function bad(field: Field, at: number, problem: string) {
  return timeError('EXPRESSION_SYNTAX', `${where(field)}: ${problem} (at character ${field.at + at + 1})`)
}

export function range(field: Field, at: number, problem: string) {
  return timeError('EXPRESSION_OUT_OF_RANGE', `${where(field)}: ${problem} (at character ${field.at + at + 1})`)
}

function where(field: Field): string {
  return `field ${field.number} (${field.rule.name})`
}
