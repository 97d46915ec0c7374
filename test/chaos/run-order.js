// @ts-check
/**
 * Checks the order of runs: of a schedule whose runs must not overlap, of runs that share a key, and of runs skipped
 * because their key was busy.
 */
import { groupBy } from './group-by.js'
import { nameOf } from './verify.js'

/**
 * @typedef {import('./verify.js').Run} Run
 * @typedef {import('./verify.js').Line} Line
 */

/** With broken processes and connections, this much time may pass between a run's creation and a claim that sees it. */
const RECORDED_MS = 5_000

/** Two runs created within this time have no defined order. */
const OLDER_MS = 1_000

/**
 * Under every policy but `allow`, no attempt of a schedule starts before the final attempt of the previous run has
 * returned, and ticks start in order.
 * @param {readonly Line[]} lines
 * @param {ReadonlyMap<string, Run>} runs
 * @param {ReadonlyMap<string, import('../../dist/index.js').Overlap>} policies
 * @param {string[]} violations
 * @returns {number} how many runs were checked
 */
export function checkOverlaps(lines, runs, policies, violations) {
  let inTurn = 0
  for (const [schedule, spans] of groupBy(spansOf(lines, runs), ({ run }) => run.schedule)) {
    const policy = policies.get(schedule) ?? 'allow'
    if (policy === 'allow') continue
    inTurn += spans.length
    spans.sort((one, other) => one.from - other.from)
    let last = spans[0]
    for (const span of spans.slice(1)) {
      if (last === undefined) continue
      const both = `${nameOf(last.run)} and ${nameOf(span.run)}, with overlap ${policy}`
      if (span.from < last.to) violations.push(`${both}, overlapped for ${Math.round(last.to - span.from)} ms`)
      if ((span.run.tick ?? 0) < (last.run.tick ?? 0)) violations.push(`${both}, began in this order`)
      if (span.to > last.to) last = span
    }
  }
  return inTurn
}

/**
 * The time of each run from its first start to the return of its final attempt.
 * @param {readonly Line[]} lines
 * @param {ReadonlyMap<string, Run>} runs
 */
function spansOf(lines, runs) {
  /** @type {Map<string, number>} */
  const began = new Map()
  for (const { kind, run = '', t } of lines) if (kind === 'start') began.set(run, Math.min(t, began.get(run) ?? t))
  /** @type {{ run: Run, from: number, to: number }[]} */
  const spans = []
  for (const { kind, run: id = '', token, t } of lines) {
    const run = runs.get(id)
    if (kind !== 'end' || run?.state !== 'succeeded' || run.token !== token) continue
    spans.push({ run, from: began.get(id) ?? t, to: t })
  }
  return spans
}

/**
 * Of two runs that wait for one key, the older one gets it first. Clock differences excuse a wrong order only between
 * schedules, because the runs of one schedule are in one shard. Only runs that were claimed once are compared, because
 * only their start is known.
 * @param {ReadonlyMap<string, Run>} runs
 * @param {number} clockErrorMs
 * @param {string[]} violations
 * @returns {number} how many runs were compared with others of their key
 */
export function checkFairness(runs, clockErrorMs, violations) {
  const waited = [...runs.values()].filter(
    ({ key, attempt, startedAt }) => key?.whenBusy === 'wait' && attempt === 1 && startedAt !== undefined,
  )
  for (const [key, ofKey] of groupBy(waited, ({ key }) => key?.name)) {
    for (const [schedule, ticks] of groupBy(ofKey, (run) => run.schedule)) {
      ticks.sort((one, other) => (one.tick ?? 0) - (other.tick ?? 0))
      const wrong = ticks.filter(({ token = 0 }, at) => token < (ticks[at - 1]?.token ?? 0))
      for (const run of wrong) violations.push(`${nameOf(run)} had ${key} before an older run of ${schedule}`)
    }
    ofKey.sort((one, other) => (one.startedAt ?? 0) - (other.startedAt ?? 0))
    ofKey.forEach((run, at) => {
      const isPassedOver = (/** @type {Run} */ other) =>
        other.createdAt + RECORDED_MS + clockErrorMs < (run.startedAt ?? 0) &&
        other.createdAt + OLDER_MS + clockErrorMs < run.createdAt &&
        (other.startedAt ?? 0) - clockErrorMs > (run.startedAt ?? 0)
      const older = ofKey.slice(at + 1).find(isPassedOver)
      if (older !== undefined) violations.push(`${nameOf(run)} had ${key} before ${nameOf(older)}, which is older`)
    })
  }
  return waited.length
}

/**
 * A run is skipped as busy only while another run of its key runs. The history keeps only the last start of a run, so
 * one that was claimed more than once may have run at any time since its creation.
 * @param {ReadonlyMap<string, Run>} runs
 * @param {number} clockErrorMs
 * @param {string[]} violations
 * @returns {number} how many were skipped
 */
export function checkBusy(runs, clockErrorMs, violations) {
  const keyed = [...runs.values()].filter(({ key }) => key !== undefined)
  const byKey = groupBy(keyed, ({ key }) => key?.name)
  const skipped = keyed.filter(({ state, reason }) => state === 'skipped' && reason === 'busy')
  for (const run of skipped) {
    const { key, finishedAt: at = 0 } = run
    /** @param {Run} other */
    const isHolder = ({ attempt, createdAt, startedAt, finishedAt }) => {
      const from = attempt === 1 ? (startedAt ?? createdAt) : createdAt
      return attempt > 0 && from - clockErrorMs <= at && at <= (finishedAt ?? 0) + clockErrorMs
    }
    const ofKey = byKey.get(key?.name ?? '') ?? []
    if (ofKey.some(isHolder)) continue
    const [before] = ofKey
      .filter(({ attempt, finishedAt = 0 }) => attempt > 0 && finishedAt < at)
      .sort((one, other) => (other.finishedAt ?? 0) - (one.finishedAt ?? 0))
    const last = before === undefined ? '' : `; ${nameOf(before)} had ended ${at - (before.finishedAt ?? 0)} ms before`
    violations.push(`${nameOf(run)} was skipped as busy, and nothing of ${key?.name} ran then${last}`)
  }
  return skipped.length
}
