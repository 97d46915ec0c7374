/** The two day fields, with their modifiers: `L`, `L-3`, `LW`, `15W`, `FRI#2`, `FRI#L`, `+`. */
import {
  asGiven,
  bad,
  eachValue,
  entries,
  type Field,
  range,
  readNumber,
  readRange,
  readValue,
  WEEKDAY,
} from './values.js'

const ALL_MONTH_DAYS = -1 >>> 1

export function readMonthDays(field: Field) {
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
  if (days === undefined) throw bad(field, at, `${asGiven(field, text, at)} is not understood; write L, L-3 or LW`)
  if (days < 1 || days > 30) throw range(field, at, `${text}: ${days} is out of range 1–30`)
  return days
}

export function readWeekdays(field: Field) {
  const both = field.text.startsWith('+')
  const inner = both ? { ...field, text: field.text.slice(1), given: field.given.slice(1), at: field.at + 1 } : field
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
    throw bad(field, at, `${asGiven(field, entry, at)}: "${modifier}" stands after a single day, such as "${example}"`)
  }
  return readValue(field, day, at)
}
