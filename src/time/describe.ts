// This file of the package is half as large as its main entry. Loading it takes a tenth of the time of `belfry next`.
import cronstrue from 'cronstrue/dist/cronstrue.min.js'
import { MAX_YEAR } from './calendar.js'
import type { CronFields } from './cron/fields.js'
import { plainExpression } from './cron/parse.js'
import { dayWords } from './day-words.js'
import { listWords, NO_WORDS, runsOf } from './list-words.js'

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
]
const ALL_MONTHS = 0xfff

/**
 * Human text for a cron expression, with its zone: "At 09:00, Monday through Friday, Europe/Berlin time". Expressions with
 * different ticks have different texts.
 */
export function describeCron(expression: string, fields: CronFields, zone: string): string {
  const parts = [timeWords(expression), dayWords(fields), monthWords(fields.months), yearWords(fields.years)]
  return `${parts.filter((part) => part !== NO_WORDS).join(', ')}, ${zone === 'UTC' ? 'UTC' : `${zone} time`}`
}

/** cronstrue describes the time of day alone: it says the same of expressions whose days differ. */
function timeWords(expression: string): string {
  const tokens = plainExpression(expression).split(/[ \t]+/)
  // A list that begins with "*" matches the same as "*".
  const time = tokens.slice(0, tokens.length > 5 ? 3 : 2).map((token) => (token.startsWith('*,') ? '*' : token))
  try {
    return cronstrue.toString(`${time.join(' ')} * * *`, { use24HourTimeFormat: true })
  } catch {
    // cronstrue throws a string for forms that it does not know.
    return `At the times of "${time.join(' ')}"`
  }
}

function monthWords(months: number): string {
  if (months === ALL_MONTHS) return NO_WORDS
  const runs = runsOf(months, 12, true)
  const words = listWords(runs, (month) => MONTHS[month % 12] ?? '')
  return runs.length === 1 && words.includes(' through ') ? words : `only in ${words}`
}

function yearWords(years: Int16Array | undefined): string {
  if (years === undefined) return NO_WORDS
  const words: string[] = []
  for (let at = 0; at < years.length; at += 3) {
    const [from = 0, to = 0, step = 1] = years.subarray(at, at + 3)
    words.push(from === to ? `${from}` : yearRangeWords(from, to, step))
  }
  const isRange = years.length === 3 && years[0] !== years[1]
  return isRange ? (words[0] ?? '') : `only in ${words.join(' and ')}`
}

/** The parser counts the steps of `*` from year 0: the years of a step n are those that n divides. */
function yearRangeWords(from: number, to: number, step: number): string {
  if (step === 1) return `${from} through ${to}`
  return from === step && to === MAX_YEAR
    ? `years divisible by ${step}`
    : `every ${step} years from ${from} through ${to}`
}
