// @ts-check
import { wrongClock } from '../servers/faketime.js'

const MAX_SKEW_MS = 600_000

/**
 * The clock skew of each process, and the environment that sets it. The first two have the maximum skew, one in each
 * direction.
 * @param {number} processes
 * @param {() => number} random
 */
export function clockSkews(processes, random) {
  const skews = Array.from({ length: processes }, (_, at) => (at < 2 ? 1 - 2 * at : random() * 2 - 1) * MAX_SKEW_MS)
  const environments = skews.map((skew) => wrongClock(Math.round(skew)))
  return {
    environmentOf: (/** @type {number} */ at) => environments[at] ?? {},
    skewOf: (/** @type {number} */ at) => skews[at] ?? 0,
  }
}
