// @ts-check
/** The cases of the bench: each makes a contender of any library. */
import { EXPRESSIONS, moments, ZONES } from './expressions.js'

/**
 * @typedef {import('./calculators.js').Calculator<unknown>} Calculator
 * @typedef {import('../harness/measure.js').Contender} Contender
 * @typedef {readonly (string | undefined)[]} Zones
 */

export const STEPS = 10
const MOMENTS = moments(500)
const PARSES = 100

/** Sums up all results, so that the compiler cannot remove the work. */
export const sink = { sum: 0 }

/**
 * Calculates several successive ticks at a time, as a scheduler does.
 * @param {Calculator} calculator
 * @param {Zones} zones
 * @returns {Contender}
 */
export function walking(calculator, zones) {
  const parsed = parseAll(calculator, zones)
  const nextMoment = cycle(MOMENTS)
  return {
    name: calculator.name,
    batch() {
      const from = nextMoment()
      for (const each of parsed) sink.sum += calculator.walk(each, from, STEPS)
      return parsed.length * STEPS
    },
  }
}

/**
 * Calculates the next tick after each of several unrelated instants.
 * @param {Calculator} calculator
 * @param {Zones} zones
 * @returns {Contender}
 */
export function jumping(calculator, zones) {
  const parsed = parseAll(calculator, zones)
  const nextMoment = cycle(MOMENTS)
  return {
    name: calculator.name,
    batch() {
      const instants = Array.from({ length: STEPS }, nextMoment)
      for (const each of parsed) sink.sum += calculator.nextOfEach(each, instants)
      return parsed.length * STEPS
    },
  }
}

/**
 * @param {Calculator} calculator
 * @param {readonly string[]} expressions
 * @returns {Contender}
 */
export function parsing(calculator, expressions) {
  const nextExpression = cycle(expressions)
  return {
    name: calculator.name,
    batch() {
      for (let done = 0; done < PARSES; done += 1) {
        if (calculator.parse(nextExpression(), undefined)) sink.sum += 1
      }
      return PARSES
    },
  }
}

/**
 * @param {Calculator} calculator
 * @param {readonly string[]} expressions
 * @returns {Contender}
 */
export function parsingAndNext(calculator, expressions) {
  const nextExpression = cycle(expressions)
  const nextZone = cycle(ZONES)
  const nextMoment = cycle(MOMENTS)
  return {
    name: calculator.name,
    batch() {
      for (let done = 0; done < PARSES; done += 1) {
        sink.sum += calculator.walk(calculator.parse(nextExpression(), nextZone()), nextMoment(), 1)
      }
      return PARSES
    },
  }
}

/**
 * The share of (expression, zone, instant) for which all libraries return the same tick.
 * @param {readonly Calculator[]} calculators
 * @param {Zones} zones
 */
export function agreement(calculators, zones) {
  const from = MOMENTS.slice(0, 100)
  const [ours = [], ...theirs] = calculators.map((calculator) =>
    parseAll(calculator, zones).flatMap((each) => from.map((moment) => calculator.walk(each, moment, 1))),
  )
  const same = ours.filter((tick, at) => theirs.every((ticks) => ticks[at] === tick)).length
  return Math.round((same / ours.length) * 10_000) / 10_000
}

/**
 * @param {Calculator} calculator
 * @param {Zones} zones
 */
function parseAll(calculator, zones) {
  return zones.flatMap((zone) => EXPRESSIONS.map((expression) => calculator.parse(expression, zone)))
}

/**
 * @template Item
 * @param {readonly Item[]} items
 * @returns {() => Item}
 */
function cycle(items) {
  let at = -1
  return () => {
    at = (at + 1) % items.length
    return /** @type {Item} */ (items[at])
  }
}
