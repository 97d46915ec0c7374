// @ts-check
/**
 * Checks that the tokens of a name only grow, in the order in which they were granted, through all faults of the store.
 */
import { groupBy } from './group-by.js'

/**
 * A lock acquired before another was requested has the lower token. No two attempts that held a key have the same
 * token.
 * @param {readonly import('./verify.js').Line[]} lines
 * @param {string[]} violations
 * @returns {number} how many locks were compared
 */
export function checkTokens(lines, violations) {
  let locks = 0
  for (const [name, taken] of groupBy(
    lines.filter(({ kind }) => kind === 'lock'),
    ({ key }) => key,
  )) {
    locks += taken.length
    checkGrowth(name, taken, violations)
  }
  const starts = lines.filter(({ kind, key }) => kind === 'start' && key !== undefined)
  for (const [key, attempts] of groupBy(starts, ({ key }) => key)) {
    /** @type {Map<number, string>} */
    const holders = new Map()
    for (const { run, attempt, token = 0 } of attempts) {
      const [holder, other] = [`attempt ${attempt} of run ${run}`, holders.get(token)]
      if (other !== undefined && other !== holder)
        violations.push(`token ${token} of ${key} was given to ${other} and to ${holder}`)
      holders.set(token, holder)
    }
  }
  return locks
}

/**
 * @param {string} name
 * @param {readonly import('./verify.js').Line[]} taken
 * @param {string[]} violations
 */
function checkGrowth(name, taken, violations) {
  const had = [...taken].sort((one, other) => one.t - other.t)
  const asked = [...taken].sort((one, other) => (one.sentAt ?? 0) - (other.sentAt ?? 0))
  let [highest, next] = [0, 0]
  for (const { sentAt = 0, token = 0, pid } of asked) {
    for (; (had[next]?.t ?? Number.POSITIVE_INFINITY) < sentAt; next += 1) {
      highest = Math.max(highest, had[next]?.token ?? 0)
    }
    if (token <= highest) violations.push(`the token of the lock ${name} fell from ${highest} to ${token} (${pid})`)
  }
}
