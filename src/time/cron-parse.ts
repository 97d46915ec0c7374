/**
 * Text to masks, for the Open Cron Pattern Specification 1.0 to 1.4. A hand-written scanner: every character is looked
 * at a bounded number of times, and every error names the field, the value and the position.
 */
import { daysFromCivil, daysInMonth, MAX_YEAR, MIN_YEAR, weekdayOf } from './calendar.js'
import { type CronFields, DayRule, matchingDays } from './cron-fields.js'
import { quote, timeError } from './error.js'

export const MAX_EXPRESSION = 256

const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
])

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

interface FieldRule {
  readonly name: string
  readonly min: number
  readonly max: number
  readonly names?: readonly string[]
  readonly hint?: string
}

const SECOND: FieldRule = { name: 'second', min: 0, max: 59 }
const MINUTE: FieldRule = { name: 'minute', min: 0, max: 59 }
const HOUR: FieldRule = { name: 'hour', min: 0, max: 23 }
const MONTH_DAY: FieldRule = { name: 'day of month', min: 1, max: 31, hint: 'L, L-3, LW, 15W' }
const MONTH: FieldRule = { name: 'month', min: 1, max: 12, names: MONTHS, hint: 'JAN–DEC' }
const WEEKDAY: FieldRule = { name: 'day of week', min: 0, max: 7, names: WEEKDAYS, hint: 'SUN–SAT, FRI#2, FRI#L, +MON' }
const YEAR: FieldRule = { name: 'year', min: MIN_YEAR, max: MAX_YEAR }

/** One field of the expression, with where it stands, so that errors can point at it. */
interface Field {
  readonly rule: FieldRule
  readonly text: string
  readonly number: number
  readonly at: number
}

/** The five to seven fields of a nickname or of the expression itself, in one spelling. */
export function plainExpression(expression: string): string {
  const text = trim(expression)
  return NICKNAMES.get(text) ?? text
}

export function parseCron(expression: string): CronFields {
  if (expression.length > MAX_EXPRESSION) {
    throw timeError(
      'EXPRESSION_TOO_LONG',
      `cron expression is ${expression.length} characters long: at most ${MAX_EXPRESSION} are allowed`,
    )
  }
  const text = trim(expression)
  const nickname = NICKNAMES.get(text)
  if (text.startsWith('@') && nickname === undefined) throw unknownNickname(text)
  const fields = split(nickname ?? expression)
  const parsed = readFields(fields)
  refuseNever(parsed, expression)
  return parsed
}

function readFields(fields: readonly Field[]): CronFields {
  const withSeconds = fields.length > 5
  const [minute, hour, monthDay, month, weekday, year] = (withSeconds ? fields.slice(1) : fields) as [
    Field,
    Field,
    Field,
    Field,
    Field,
    Field?,
  ]
  const seconds = withSeconds ? readSixty(fields[0] as Field) : { low: 1, high: 0 }
  const minutes = readSixty(minute)
  const days = readMonthDays(monthDay)
  const week = readWeekdays(weekday)
  return {
    secondsLow: seconds.low,
    secondsHigh: seconds.high,
    minutesLow: minutes.low,
    minutesHigh: minutes.high,
    hours: readMask(hour),
    ...days,
    months: readMask(month) >> 1,
    ...week.masks,
    days: dayRule(isWild(monthDay), isWild(weekday), week.both),
    years: year === undefined || year.text === '*' ? undefined : readYears(year),
    wildcard: minute.text.startsWith('*') || hour.text.startsWith('*'),
  }
}

function dayRule(anyMonthDay: boolean, anyWeekday: boolean, both: boolean): DayRule {
  if (anyMonthDay && anyWeekday) return DayRule.every
  // An unrestricted field matches every day, so "both" leaves the decision to the other one.
  return both || anyMonthDay || anyWeekday ? DayRule.both : DayRule.either
}

/** A field is unrestricted when its first entry is `*` itself; `1-31` and `* /2` are restrictions. */
function isWild(field: Field): boolean {
  const first = field.text.startsWith('+') ? field.text.slice(1) : field.text
  return first === '*' || first === '?' || first.startsWith('*,')
}

function split(expression: string): Field[] {
  const tokens: { text: string; at: number }[] = []
  let at = 0
  while (at < expression.length) {
    if (isBlank(expression.charCodeAt(at))) {
      at += 1
      continue
    }
    const start = at
    while (at < expression.length && !isBlank(expression.charCodeAt(at))) at += 1
    tokens.push({ text: upperCase(expression.slice(start, at)), at: start })
  }
  const rules = rulesFor(tokens.length, expression)
  return tokens.map(({ text, at }, index) => ({ text, at, number: index + 1, rule: rules[index] as FieldRule }))
}

function rulesFor(count: number, expression: string): readonly FieldRule[] {
  if (count === 5) return [MINUTE, HOUR, MONTH_DAY, MONTH, WEEKDAY]
  if (count === 6) return [SECOND, MINUTE, HOUR, MONTH_DAY, MONTH, WEEKDAY]
  if (count === 7) return [SECOND, MINUTE, HOUR, MONTH_DAY, MONTH, WEEKDAY, YEAR]
  throw timeError(
    'EXPRESSION_SYNTAX',
    `cron expression ${quote(expression)} has ${count} field${count === 1 ? '' : 's'}: ` +
      'write 5 (minute hour day month weekday), 6 (second first) or 7 (year last)',
  )
}

/** Of ASCII letters only: to Unicode, "ſ" and "ı" have the capitals S and I, and "ß" has two. */
function upperCase(text: string): string {
  return /[a-z]/.test(text) ? text.replace(/[a-z]+/g, (letters) => letters.toUpperCase()) : text
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9
}

function trim(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && isBlank(text.charCodeAt(from))) from += 1
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1
  return text.slice(from, to)
}

// ── Ranges and steps ────────────────────────────────────────────────────────────────────────────────────────────────

interface Range {
  readonly from: number
  readonly to: number
  readonly step: number
}

function readSixty(field: Field): { low: number; high: number } {
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

function readMask(field: Field): number {
  let mask = 0
  for (const range of readRanges(field)) eachValue(range, field.rule, (value) => (mask |= 1 << value))
  return mask
}

function readYears(field: Field): Int16Array {
  return Int16Array.from(readRanges(field).flatMap(({ from, to, step }) => [from, to, step]))
}

interface Entry {
  readonly text: string
  readonly at: number
}

function entries(field: Field): Entry[] {
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

function readRange(field: Field, text: string, at: number): Range {
  const slash = text.indexOf('/')
  const body = slash < 0 ? text : text.slice(0, slash)
  const dash = body.indexOf('-')
  const { min, max } = field.rule
  if (slash >= 0 && body !== '*' && dash < 0) {
    const start = body === '' ? min : body
    throw bad(
      field,
      at,
      `${quote(text)}: a step needs "*" or a range before it, such as "${start}-${max}/${text.slice(slash + 1)}"`,
    )
  }
  const step = slash < 0 ? 1 : readStep(field, text.slice(slash + 1), at + slash + 1)
  // Years count from 0 even though the calendar begins at 1: every second year is the even ones, every fourth 2024.
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

/** Calls back for every value of a range; one that runs backwards wraps around (`22-2`, `FRI-MON`). */
function eachValue({ from, to, step }: Range, rule: FieldRule, visit: (value: number) => void): void {
  const lap = lapOf(rule)
  const last = to < from ? to + lap : to
  for (let value = from; value <= last; value += step) visit(((value - rule.min) % lap) + rule.min)
}

/** How many values a field has. In the weekday field 7 is Sunday again, so there are fewer than it has numbers. */
function lapOf(rule: FieldRule): number {
  return rule === WEEKDAY ? 7 : rule.max - rule.min + 1
}

function readStep(field: Field, text: string, at: number): number {
  const step = readNumber(text)
  if (step === undefined) throw bad(field, at, `step ${quote(text)} is not a number`)
  const most = lapOf(field.rule)
  if (step < 1 || step > most) throw range(field, at, `step ${step} is out of range 1–${most}`)
  return step
}

function readValue(field: Field, text: string, at: number): number {
  const { min, max, names } = field.rule
  const named = names?.indexOf(text) ?? -1
  if (named >= 0) return named + min
  const value = readNumber(text)
  if (value === undefined) throw bad(field, at, `${quote(text)} is not understood; allowed: ${allowed(field.rule)}`)
  if (value < min || value > max) throw range(field, at, `${value} is out of range ${min}–${max}`)
  return value
}

/** Plain digits only; anything else, and anything absurdly long, is not a number. */
function readNumber(text: string): number | undefined {
  if (text.length === 0 || text.length > 9) return undefined
  let value = 0
  for (let at = 0; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) return undefined
    value = value * 10 + digit
  }
  return value
}

// ── Days ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const ALL_MONTH_DAYS = -1 >>> 1

function readMonthDays(field: Field) {
  let monthDays = 0
  let daysFromLast = 0
  let nearestWeekdays = 0
  let lastWeekday = false
  if (field.text === '?') return { monthDays: ALL_MONTH_DAYS, daysFromLast, nearestWeekdays, lastWeekday }
  for (const { text, at } of entries(field)) {
    if (text === 'LW') lastWeekday = true
    else if (text.startsWith('L')) daysFromLast |= 1 << readFromLast(field, text, at)
    else if (text.endsWith('W')) nearestWeekdays |= 1 << (readSingleDay(field, text, text.length - 1, at) - 1)
    else eachValue(readRange(field, text, at), field.rule, (day) => (monthDays |= 1 << (day - 1)))
  }
  return { monthDays, daysFromLast, nearestWeekdays, lastWeekday }
}

/** `L` is 0, `L-3` is 3 days before the last. */
function readFromLast(field: Field, text: string, at: number): number {
  if (text === 'L') return 0
  const days = text[1] === '-' ? readNumber(text.slice(2)) : undefined
  if (days === undefined) throw bad(field, at, `${quote(text)} is not understood; write L, L-3 or LW`)
  if (days < 1 || days > 30) throw range(field, at, `${text}: ${days} is out of range 1–30`)
  return days
}

function readWeekdays(field: Field) {
  const both = field.text.startsWith('+')
  const inner = both ? { ...field, text: field.text.slice(1), at: field.at + 1 } : field
  let weekdays = 0
  let nthWeekdays = 0
  let lateWeekdays = 0
  if (inner.text === '?') return { both, masks: { weekdays: 127, nthWeekdays, lateWeekdays } }
  for (const { text, at } of entries(inner)) {
    const hash = text.indexOf('#')
    const nth = hash >= 0 ? text.slice(hash + 1) : text.endsWith('L') ? 'L' : undefined
    if (nth === undefined) {
      eachValue(readRange(inner, text, at), inner.rule, (day) => (weekdays |= 1 << (day % 7)))
      continue
    }
    const day = readSingleDay(inner, text, hash >= 0 ? hash : text.length - 1, at) % 7
    const number = nth === 'L' ? 6 : readNth(inner, nth, at + hash + 1)
    if (number <= 4) nthWeekdays |= 1 << ((number - 1) * 7 + day)
    else lateWeekdays |= 1 << ((number - 5) * 7 + day)
  }
  return { both, masks: { weekdays, nthWeekdays, lateWeekdays } }
}

function readNth(field: Field, text: string, at: number): number {
  const nth = readNumber(text)
  if (nth === undefined) throw bad(field, at, `"#${text}" is not understood; write #1 to #5 or #L`)
  if (nth < 1 || nth > 5) throw range(field, at, `#${nth} is out of range #1–#5`)
  return nth
}

/** The day before a modifier: `15` of `15W`, `FRI` of `FRI#2`. */
function readSingleDay(field: Field, entry: string, length: number, at: number): number {
  const day = entry.slice(0, length)
  if (day === '' || day === '*' || day.includes('-') || day.includes('/')) {
    const modifier = entry.slice(length)
    const example = `${field.rule === WEEKDAY ? 'FRI' : '15'}${modifier}`
    throw bad(field, at, `${quote(entry)}: "${modifier}" stands after a single day, such as "${example}"`)
  }
  return readValue(field, day, at)
}

// ── Refusals ────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Refuses an expression whose date does not exist in any year. Only the length of a month and the weekday of its first
 * matter, and the Gregorian calendar has all their combinations: so looking at those is looking at every year.
 */
function refuseNever(fields: CronFields, expression: string): void {
  const kinds = fields.years === undefined ? KINDS_OF_YEAR : kindsOf(fields.years)
  for (const year of kinds) {
    for (let month = 1; month <= 12; month += 1) {
      if ((fields.months & (1 << (month - 1))) === 0) continue
      const first = weekdayOf(daysFromCivil(year, month, 1))
      if (matchingDays(fields, daysInMonth(year, month), first) !== 0) return
    }
  }
  throw timeError(
    'EXPRESSION_NEVER_FIRES',
    `cron expression ${quote(expression)} can never fire: no month that it allows has such a day`,
  )
}

/** One year for each of the 14 kinds: common and leap, beginning on each weekday. */
const KINDS_OF_YEAR: readonly number[] = Array.from({ length: 28 }, (_, index) => 2001 + index).filter(
  (year, index, years) => years.findIndex((other) => kindOf(other) === kindOf(year)) === index,
)

function kindOf(year: number): number {
  return weekdayOf(daysFromCivil(year, 1, 1)) * 2 + (daysInMonth(year, 2) - 28)
}

function kindsOf(years: Int16Array): number[] {
  const found = new Map<number, number>()
  for (let at = 0; at < years.length && found.size < 14; at += 3) {
    const [from = 0, to = 0, step = 1] = years.subarray(at, at + 3)
    // The calendar repeats after 400 years, so 400 steps have met every kind that more would meet.
    const last = Math.min(to, from + 400 * step)
    for (let year = from; year <= last && found.size < 14; year += step) found.set(kindOf(year), year)
  }
  return [...found.values()]
}

function unknownNickname(text: string) {
  if (text === '@reboot') {
    return timeError(
      'EXPRESSION_UNSUPPORTED',
      '"@reboot" names no instant and is not supported: run the work when your app starts, or enqueue it then',
    )
  }
  const lower = text.toLowerCase()
  const hint = !NICKNAMES.has(lower) ? `known are ${[...NICKNAMES.keys()].join(', ')}` : `write "${lower}"`
  return timeError('EXPRESSION_SYNTAX', `nickname ${quote(text)} is unknown: ${hint}, @every or @at`)
}

function allowed({ min, max, hint }: FieldRule): string {
  return `${min}–${max}, *, lists, ranges, steps${hint === undefined ? '' : `, ${hint}`}`
}

function bad(field: Field, at: number, problem: string) {
  return timeError('EXPRESSION_SYNTAX', `${where(field)}: ${problem} (at character ${field.at + at + 1})`)
}

function range(field: Field, at: number, problem: string) {
  return timeError('EXPRESSION_OUT_OF_RANGE', `${where(field)}: ${problem} (at character ${field.at + at + 1})`)
}

function where(field: Field): string {
  return `field ${field.number} (${field.rule.name})`
}
