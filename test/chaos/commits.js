// @ts-check
/** Checks the effects that handlers committed together with the success of their runs. */
import { nameOf } from './verify.js'

/**
 * Each succeeded run has exactly one effect, by the attempt that succeeded; other runs have none; and the effects of
 * one key are in the order of their tokens.
 * @param {readonly import('./stores.js').Effect[]} effects
 * @param {ReadonlyMap<string, import('./verify.js').Run>} runs
 * @param {string[]} violations
 */
export function checkCommits(effects, runs, violations) {
  /** @type {Map<string, number>} */
  const written = new Map()
  /** @type {Map<string, number>} */
  const lastToken = new Map()
  for (const { run: id, key, token } of effects) {
    written.set(id, (written.get(id) ?? 0) + 1)
    const run = runs.get(id)
    if (run === undefined) violations.push(`there is an effect of run ${id}, which the store does not know`)
    else if (run.token !== token) violations.push(`a stale attempt of ${nameOf(run)} committed (token ${token})`)
    const last = lastToken.get(key) ?? 0
    if (token <= last) violations.push(`effects of ${key} were committed out of order: token ${token} after ${last}`)
    lastToken.set(key, token)
  }
  for (const run of runs.values()) {
    if (run.key === undefined) continue
    const [expected, found] = [run.state === 'succeeded' ? 1 : 0, written.get(run.id) ?? 0]
    if (found !== expected) violations.push(`${nameOf(run)} ${run.state} and committed ${found} effects`)
  }
}
