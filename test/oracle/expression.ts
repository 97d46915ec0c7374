/**
 * Random cron expressions, each with its meaning as plain predicates. The generator builds both together, so a check
 * needs no second parser and shares no code with the parser under test.
 */
import type { Random } from './random.js'

/** Which syntax to generate: what croner reads, what cron-parser reads, or all that Belfry reads. */
export type Dialect = 'croner' | 'cron-parser' | 'belfry'

export interface Expression {
  readonly text: string
  readonly seconds: ReadonlySet<number>
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  matchesDay(year: number, month: number, day: number): boolean
  /** The minute or the hour field begins with `*`. */
  readonly wildcard: boolean
}

interface Values {
  readonly text: string
  readonly values: ReadonlySet<number>
}

interface Days {
  readonly text: string
  /** `*` or `?`: the other day field decides. */
  readonly any: boolean
  matches(year: number, month: number, day: number): boolean
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

export interface Shape {
  /** Whether to generate expressions that mostly fire every day in the hours 0 to 4, when clocks change. */
  readonly nearChange: boolean
}

export function expression(random: Random, dialect: Dialect, shape: Shape): Expression {
  const fields = dialect === 'cron-parser' ? random.pick([5, 5, 6]) : random.pick([5, 5, 5, 6, 6, 7])
  const second = fields > 5 ? sixty(random, dialect, 0.05) : { text: '0', values: new Set([0]) }
  const minute = sixty(random, dialect, shape.nearChange ? 0.15 : 0.08)
  const hour = hours(random, dialect, shape)
  const monthDay = shape.nearChange && random.chance(0.6) ? anyDay(random) : dayOfMonth(random, dialect, shape)
  const month = shape.nearChange && random.chance(0.8) ? every(1, 12) : months(random, dialect)
  const weekday = shape.nearChange && random.chance(0.6) ? anyDay(random) : dayOfWeek(random, dialect)
  const both = dialect !== 'cron-parser' && random.chance(0.15)
  const year = fields === 7 ? years(random) : EVERY_YEAR
  const texts = [second.text, minute.text, hour.text, monthDay.text, month.text, `${both ? '+' : ''}${weekday.text}`]
  if (fields === 5) texts.shift()
  if (fields === 7) texts.push(year.text)
  return {
    text: texts.join(' '),
    seconds: second.values,
    minutes: minute.values,
    hours: hour.values,
    wildcard: minute.text.startsWith('*') || hour.text.startsWith('*'),
    matchesDay: (y, m, d) => year.matches(y) && month.values.has(m) && matchesDays(monthDay, weekday, both, y, m, d),
  }
}

function matchesDays(monthDay: Days, weekday: Days, both: boolean, y: number, m: number, d: number): boolean {
  if (monthDay.any) return weekday.any || weekday.matches(y, m, d)
  if (weekday.any) return monthDay.matches(y, m, d)
  const byMonth = monthDay.matches(y, m, d)
  const byWeek = weekday.matches(y, m, d)
  return both ? byMonth && byWeek : byMonth || byWeek
}

// ── Numbers, ranges, steps and lists ────────────────────────────────────────────────────────────────────────────────

function every(min: number, max: number): Values {
  return { text: '*', values: span(min, max, 1) }
}

function span(from: number, to: number, step: number): Set<number> {
  const values = new Set<number>()
  for (let value = from; value <= to; value += step) values.add(value)
  return values
}

function sixty(random: Random, dialect: Dialect, wild: number): Values {
  if (random.chance(wild)) return every(0, 59)
  if (random.chance(0.35)) return { text: '0', values: new Set([0]) }
  return numbers(random, dialect, 0, 59)
}

function hours(random: Random, dialect: Dialect, { nearChange }: Shape): Values {
  if (random.chance(0.2)) return every(0, 23)
  if (!nearChange || random.chance(0.4)) return numbers(random, dialect, 0, 23)
  const early = numbers(random, dialect === 'belfry' ? 'croner' : dialect, 0, 4)
  // `early` was generated for the hours 0 to 4, but in an hour field `*` matches 0 to 23.
  return early.text.includes('*') ? numbers(random, dialect, 0, 23) : early
}

/** A numeric field: one entry, or a list of entries. */
function numbers(random: Random, dialect: Dialect, min: number, max: number): Values {
  const count = random.pick([1, 1, 1, 2, 3])
  const texts: string[] = []
  const values = new Set<number>()
  for (let at = 0; at < count; at += 1) {
    const found = entry(random, dialect, min, max)
    // cron-parser refuses a list with a repeated value.
    if (dialect === 'cron-parser' && [...found.values].some((value) => values.has(value))) continue
    texts.push(found.text)
    for (const value of found.values) values.add(value)
  }
  return { text: texts.join(','), values }
}

function entry(random: Random, dialect: Dialect, min: number, max: number): Values {
  const kind = random.below(10)
  if (kind < 5) return single(random, min, max)
  const a = random.between(min, max)
  const b = random.between(min, max)
  const [from, to] = a <= b ? [a, b] : [b, a]
  if (kind < 7) {
    if (dialect === 'belfry' && a > b) return wrapped(a, b, min, max, 1)
    return { text: `${from}-${to}`, values: span(from, to, 1) }
  }
  const step = random.between(1, Math.min(max - min, 30))
  if (kind < 9) return { text: `*/${step}`, values: span(min, max, step) }
  if (dialect === 'belfry' && a > b) return wrapped(a, b, min, max, step)
  return { text: `${from}-${to}/${step}`, values: span(from, to, step) }
}

function wrapped(from: number, to: number, min: number, max: number, step: number): Values {
  const lap = max - min + 1
  const values = new Set<number>()
  for (let value = from; value <= to + lap; value += step) values.add(value > max ? value - lap : value)
  return { text: `${from}-${to}${step === 1 ? '' : `/${step}`}`, values }
}

function single(random: Random, min: number, max: number): Values {
  const value = random.between(min, max)
  return { text: String(value), values: new Set([value]) }
}

// ── Months and years ────────────────────────────────────────────────────────────────────────────────────────────────

function months(random: Random, dialect: Dialect): Values {
  if (random.chance(0.5)) return every(1, 12)
  if (random.chance(0.6)) return numbers(random, dialect, 1, 12)
  const a = random.between(1, 12)
  const b = random.between(a, 12)
  const values = random.chance(0.5) ? new Set([a]) : span(a, b, 1)
  const text =
    values.size === 1 ? name(random, MONTHS, a - 1) : `${name(random, MONTHS, a - 1)}-${name(random, MONTHS, b - 1)}`
  return { text, values }
}

interface Years {
  readonly text: string
  matches(year: number): boolean
}

const EVERY_YEAR: Years = { text: '*', matches: () => true }

function years(random: Random): Years {
  const kind = random.below(5)
  const from = random.between(1990, 2062)
  if (kind === 0) return EVERY_YEAR
  if (kind === 1) return { text: String(from), matches: (year) => year === from }
  const to = random.between(from, 2070)
  if (kind === 2) return { text: `${from}-${to}`, matches: (year) => year >= from && year <= to }
  const step = random.between(1, 9)
  // `*/n` matches the years divisible by n.
  if (kind === 3) return { text: `*/${step}`, matches: (year) => year % step === 0 }
  const values = span(from, to, step)
  return { text: `${from}-${to}/${step}`, matches: (year) => values.has(year) }
}

function name(random: Random, names: readonly string[], index: number): string {
  const text = names[index] ?? ''
  const spellings = [text, text.toLowerCase(), text.charAt(0) + text.slice(1).toLowerCase()]
  return random.pick(spellings)
}

// ── Days ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function anyDay(random: Random): Days {
  return { text: random.chance(0.9) ? '*' : '?', any: true, matches: () => true }
}

function dayOfMonth(random: Random, dialect: Dialect, { nearChange }: Shape): Days {
  if (!nearChange && random.chance(0.3)) return anyDay(random)
  const special = random.chance(dialect === 'cron-parser' ? 0.15 : 0.4)
  if (!special) {
    const { text, values } = numbers(random, dialect, 1, 31)
    // A list that begins with a bare "*" counts as unrestricted; numbers() never generates one.
    return { text, any: false, matches: (_y, _m, d) => values.has(d) }
  }
  const parts = [specialMonthDay(random, dialect)]
  if (parts[0]?.text !== 'LW' && random.chance(0.3)) {
    const { text, values } = single(random, 1, 28)
    parts.push({ text, any: false, matches: (_y, _m, d) => values.has(d) })
  }
  return anyOf(parts)
}

function specialMonthDay(random: Random, dialect: Dialect): Days {
  const kind = dialect === 'cron-parser' ? 0 : random.below(dialect === 'croner' ? 3 : 4)
  if (kind === 0) return { text: 'L', any: false, matches: (y, m, d) => d === lengthOf(y, m) }
  if (kind === 1) {
    const target = random.between(1, 31)
    return {
      text: `${target}${random.chance(0.5) ? 'W' : 'w'}`,
      any: false,
      matches: (y, m, d) => target <= lengthOf(y, m) && d === nearestWeekday(y, m, target),
    }
  }
  if (kind === 2) return { text: 'LW', any: false, matches: (y, m, d) => d === nearestWeekday(y, m, lengthOf(y, m)) }
  const before = random.between(1, 30)
  return { text: `L-${before}`, any: false, matches: (y, m, d) => d === lengthOf(y, m) - before }
}

function dayOfWeek(random: Random, dialect: Dialect): Days {
  if (random.chance(0.3)) return anyDay(random)
  if (random.chance(0.35)) {
    const parts = [specialWeekday(random, dialect)]
    if (dialect !== 'cron-parser' && random.chance(0.3)) parts.push(specialWeekday(random, dialect))
    return anyOf(parts)
  }
  const { text, values } = random.chance(0.6) ? numbers(random, dialect, 0, 6) : namedWeekdays(random, dialect)
  return { text, any: false, matches: (y, m, d) => values.has(weekdayOf(y, m, d)) }
}

function namedWeekdays(random: Random, dialect: Dialect): Values {
  const a = random.between(0, 6)
  const b = random.between(a, 6)
  const first = name(random, WEEKDAYS, a)
  // croner reads SUN-SUN as the whole week.
  const kind = b === 0 ? 1 : random.below(dialect === 'belfry' ? 5 : 4)
  if (kind === 0) return { text: '7', values: new Set([0]) }
  if (kind === 1) return { text: first, values: new Set([a]) }
  if (kind === 2) return { text: `${first}-${name(random, WEEKDAYS, b)}`, values: span(a, b, 1) }
  if (kind === 3) return { text: `${a}-7`, values: new Set([...span(a, 6, 1), 0]) }
  // Wraps around: FRI-MON.
  return {
    text: `${name(random, WEEKDAYS, b)}-${first}`,
    values: a === b ? new Set([a]) : wrapped(b, a, 0, 6, 1).values,
  }
}

function specialWeekday(random: Random, dialect: Dialect): Days {
  const weekday = random.between(0, 6)
  const text = random.chance(0.5) && dialect !== 'cron-parser' ? name(random, WEEKDAYS, weekday) : String(weekday)
  if (random.chance(0.35)) {
    const mark = dialect === 'cron-parser' ? 'L' : random.pick(['L', '#L'])
    return {
      text: `${text}${mark}`,
      any: false,
      matches: (y, m, d) => weekdayOf(y, m, d) === weekday && d + 7 > lengthOf(y, m),
    }
  }
  const nth = random.between(1, 5)
  return {
    text: `${text}#${nth}`,
    any: false,
    matches: (y, m, d) => weekdayOf(y, m, d) === weekday && Math.ceil(d / 7) === nth,
  }
}

function anyOf(parts: readonly Days[]): Days {
  return {
    text: parts.map((part) => part.text).join(','),
    any: false,
    matches: (y, m, d) => parts.some((part) => part.matches(y, m, d)),
  }
}

function lengthOf(year: number, month: number): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate()
}

function weekdayOf(year: number, month: number, day: number): number {
  return new Date(Date.UTC(year, month - 1, day)).getUTCDay()
}

function nearestWeekday(year: number, month: number, day: number): number {
  const isWeekday = (d: number) => d >= 1 && d <= lengthOf(year, month) && ![0, 6].includes(weekdayOf(year, month, d))
  // The nearest weekday: Friday before a Saturday, Monday after a Sunday, on the other side at a month's edge.
  for (const away of [0, -1, 1, -2, 2]) if (isWeekday(day + away)) return day + away
  throw new Error('three days in a row are no weekday')
}
