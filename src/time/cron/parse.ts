/**
 * Parses the Open Cron Pattern Specification 1.0 to 1.4 to masks. A hand-written scanner reads every character a bounded
 * number of times. Every error names the field, the value and the position.
 */

import { quote, timeError } from '../error.js'
import { readMonthDays, readWeekdays } from './days.js'
import { type CronFields, DayRule } from './fields.js'
import { refuseNever } from './never.js'
import { NICKNAMES, unknownNickname } from './nicknames.js'
import {
  type Field,
  type FieldRule,
  HOUR,
  MINUTE,
  MONTH,
  MONTH_DAY,
  readMask,
  readSixty,
  readYears,
  SECOND,
  WEEKDAY,
  YEAR,
} from './values.js'

export const MAX_EXPRESSION = 256

/** The expression that a nickname stands for; any other text as it is, trimmed. */
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
  // An unrestricted field matches every day, so with "both" the other field decides.
  return both || anyMonthDay || anyWeekday ? DayRule.both : DayRule.either
}

/** Whether a field is unrestricted: its first entry is `*` alone. `1-31` and `* /2` are restrictions. */
function isWild(field: Field): boolean {
  const first = field.text.startsWith('+') ? field.text.slice(1) : field.text
  return first === '*' || first === '?' || first.startsWith('*,')
}

function split(expression: string): Field[] {
  const tokens: { given: string; at: number }[] = []
  let at = 0
  while (at < expression.length) {
    if (isBlank(expression.charCodeAt(at))) {
      at += 1
      continue
    }
    const start = at
    while (at < expression.length && !isBlank(expression.charCodeAt(at))) at += 1
    tokens.push({ given: expression.slice(start, at), at: start })
  }
  refuseMisplaced(tokens.map(({ given }) => given))
  const rules = rulesFor(tokens.length, expression)
  return tokens.map(({ given, at }, index) => {
    return { given, text: upperCase(given), at, number: index + 1, rule: rules[index] as FieldRule }
  })
}

const ZONE = /^(?:CRON_)?TZ=(.*)$/i
const ZONE_NAME = /^(?:UTC|GMT|Z|[A-Za-z]+\/[A-Za-z_/-]+)$/
const YEAR_ALONE = /^(?:19|20|21)\d\d$/

/** Refuses what other schedulers have inside the expression: a time zone, and a year without seconds. */
function refuseMisplaced(tokens: readonly string[]): void {
  const last = tokens.at(-1) ?? ''
  const prefix = ZONE.exec(tokens[0] ?? '')?.[1]
  const name = prefix ?? (tokens.length > 5 && ZONE_NAME.test(last) ? last : undefined)
  if (name !== undefined) {
    const rest = prefix === undefined ? tokens.slice(0, -1) : tokens.slice(1)
    throw timeError(
      'EXPRESSION_SYNTAX',
      `a cron expression holds no time zone: write cron: ${quote(rest.join(' '))}, timezone: ${quote(name)}`,
    )
  }
  if (tokens.length === 6 && YEAR_ALONE.test(last)) {
    throw timeError(
      'EXPRESSION_SYNTAX',
      `six fields begin with seconds, and a year is the seventh: write ${quote(`0 ${tokens.join(' ')}`)}`,
    )
  }
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

/** Converts ASCII letters only: `toUpperCase` also turns "ſ" into S, "ı" into I and "ß" into two letters. */
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
