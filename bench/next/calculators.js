// @ts-check
/**
 * The libraries behind one interface. Each method loops over the instants itself, so that the wrapper costs no library a
 * call per instant, and each library gets its instants in the form that it reads fastest.
 */
import { CronExpressionParser } from 'cron-parser'
import { Cron } from 'croner'
import { parseCronTimeline, timeline } from '../../dist/time/timeline.js'
import { peerVersion } from '../harness/peers.js'

/**
 * @typedef {object} Moment
 * @property {number} ms
 * @property {Date} date
 */

/**
 * @template Parsed
 * @typedef {object} Calculator
 * @property {string} name
 * @property {(expression: string, zone: string | undefined) => Parsed} parse
 * @property {(parsed: Parsed, from: Moment, steps: number) => number} walk The tick after that many steps.
 * @property {(parsed: Parsed, moments: readonly Moment[]) => number} nextOfEach The sum of the next ticks.
 */

/** @type {Calculator<import('../../dist/time/timeline.js').Timeline>} */
export const belfry = {
  name: 'belfry',
  parse: (cron, timezone) => parseCronTimeline(timezone === undefined ? { cron } : { cron, timezone }),
  walk(parsed, from, steps) {
    let at = from.ms
    for (let step = 0; step < steps; step += 1) at = parsed.next(at) ?? Number.NaN
    return at
  },
  nextOfEach(parsed, moments) {
    let sum = 0
    for (const { ms } of moments) sum += parsed.next(ms) ?? Number.NaN
    return sum
  },
}

/** Parses as users do, through the cache of parsed expressions. @type {typeof belfry} */
export const belfryCached = {
  ...belfry,
  name: 'belfry, cached',
  parse: (cron, timezone) => timeline(timezone === undefined ? { cron } : { cron, timezone }),
}

/** @type {Calculator<Cron>} */
export const croner = {
  name: `croner ${peerVersion('croner')}`,
  parse: (expression, timezone) => new Cron(expression, timezone === undefined ? {} : { timezone }),
  walk(parsed, from, steps) {
    let at = from.date
    for (let step = 0; step < steps; step += 1) at = parsed.nextRun(at) ?? new Date(Number.NaN)
    return at.getTime()
  },
  nextOfEach(parsed, moments) {
    let sum = 0
    for (const { date } of moments) sum += parsed.nextRun(date)?.getTime() ?? Number.NaN
    return sum
  },
}

/** @type {Calculator<import('cron-parser').CronExpression>} */
export const cronParser = {
  name: `cron-parser ${peerVersion('cron-parser')}`,
  parse: (expression, tz) => CronExpressionParser.parse(expression, tz === undefined ? {} : { tz }),
  walk(parsed, from, steps) {
    parsed.reset(from.date)
    let at = from.ms
    for (let step = 0; step < steps; step += 1) at = parsed.next().getTime()
    return at
  },
  nextOfEach(parsed, moments) {
    let sum = 0
    for (const { date } of moments) {
      parsed.reset(date)
      sum += parsed.next().getTime()
    }
    return sum
  },
}
