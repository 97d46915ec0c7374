// @ts-check
/** Checks the invariants of a chaos run, by comparing the store's contents with the handlers' own log. */
import { checkCommits } from './commits.js'
import { monotonicMs } from './monotonic.js'
import { checkBusy, checkFairness, checkOverlaps } from './run-order.js'
import { measureTakeovers } from './takeovers.js'
import { checkTokens } from './tokens.js'

/**
 * @typedef {object} Line
 * @property {number} t
 * @property {number} pid
 * @property {string} kind
 * @property {string} [run]
 * @property {number} [attempt]
 * @property {number} [token]
 * @property {string} [event]
 * @property {string} [key]
 * @property {number} [lateMs]
 * @property {number} [slot]
 * @property {number} [clock]
 * @property {number} [sentAt]
 *
 * @typedef {object} Findings
 * @property {string[]} violations broken invariants; a slow machine is no excuse
 * @property {string[]} late exceeded time limits, which a stalled machine can cause
 * @property {Record<string, number>} counts
 *
 * @typedef {object} Evidence
 * @property {import('../../dist/index.js').Belfry} operator
 * @property {readonly string[]} ids
 * @property {readonly Line[]} lines
 * @property {readonly import('./stores.js').Effect[] | undefined} effects
 * @property {Pick<import('./worker-processes.js').WorkerProcesses, 'kills' | 'stops' | 'unexpectedExits'>} workers
 * @property {{ outages: import('./chaos.js').Outage[], recoveries: number[], late: string[] }} history
 * @property {readonly number[]} skews
 * @property {number} leaseMs
 * @property {number} clockErrorMs
 * @property {boolean} frozenHoldsStore
 *
 * @typedef {import('../../dist/index.js').Run} Run
 */

/**
 * @param {Evidence} evidence
 * @returns {Promise<Findings>}
 */
export async function verify(evidence) {
  const { operator, ids, lines, effects, workers, history, skews, leaseMs, clockErrorMs } = evidence
  const violations = [...workers.unexpectedExits]
  const late = [...history.late]
  const counts = { ticks: 0, runs: 0, attempts: 0, takeovers: 0, stale: 0, skipped: 0, givenUp: 0 }
  /** @type {Map<string, Run>} */
  const runs = new Map()
  /** @type {Map<string, import('../../dist/index.js').Overlap>} */
  const policies = new Map()
  for (const id of ids) {
    const ofSchedule = await runsOf(operator, id)
    const schedule = await operator.schedules.get(id)
    if (schedule === undefined) violations.push(`schedule ${id} is gone`)
    else {
      policies.set(id, schedule.definition.overlap)
      await checkTicks(operator, schedule, ofSchedule, violations, counts)
    }
    for (const run of ofSchedule) runs.set(run.id, run)
  }
  const ended = new Set(lines.filter(({ kind }) => kind === 'end').map(({ run }) => run))
  for (const run of runs.values()) {
    counts.runs += 1
    counts.attempts += run.attempt
    counts.takeovers += run.takeovers
    if (run.state === 'succeeded' && !ended.has(run.id)) violations.push(`${nameOf(run)} succeeded without its handler`)
    // After the maximum number of takeovers a run fails as LOST, as documented.
    if (run.state === 'failed' && run.error?.code === 'LOST') counts.givenUp += 1
    else if (run.state === 'failed') violations.push(`${nameOf(run)} failed: ${run.error?.message}`)
  }
  checkLog(lines, runs, violations)
  checkExclusive(lines, runs, violations)
  checkClocks(lines, skews, violations)
  const locks = checkTokens(lines, violations)
  const turns = {
    inTurn: checkOverlaps(lines, runs, policies, violations),
    compared: checkFairness(runs, clockErrorMs, violations),
    busy: checkBusy(runs, clockErrorMs, violations),
  }
  if (effects !== undefined) checkCommits(effects, runs, violations)
  const takeover = measureTakeovers(evidence, runs, late)
  counts.stale = lines.filter(({ kind }) => kind === 'stale').length
  const recoveredMs = Math.max(0, ...history.recoveries)
  const crashes = history.outages.length
  const effectRows = effects?.length ?? 0
  return {
    violations,
    late,
    counts: { ...counts, ...takeover, ...turns, locks, crashes, recoveredMs, effectRows, ...delays(evidence), leaseMs },
  }
}

/** Names a run in messages. @param {Run} run */
export function nameOf({ id, schedule, tick }) {
  return tick === undefined ? `run ${id}` : `run ${id} (tick ${new Date(tick).toISOString()} of ${schedule})`
}

/** @param {import('../../dist/index.js').Belfry} operator @param {string} schedule */
async function runsOf(operator, schedule) {
  /** @type {Run[]} */
  const runs = []
  /** @type {string | undefined} */
  let after
  do {
    const page = await operator.runs.list({ schedule, limit: 1_000, ...(after === undefined ? {} : { after }) })
    runs.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return runs
}

/**
 * Every tick of the timeline exists exactly once: as a run, or within a skipped range.
 * @param {import('../../dist/index.js').Belfry} operator
 * @param {{ id: string, anchor: number, cursor: number }} schedule
 * @param {readonly Run[]} runs
 * @param {string[]} violations
 * @param {{ ticks: number, skipped: number }} counts
 */
async function checkTicks(operator, { id, anchor, cursor }, runs, violations, counts) {
  /** @type {Map<number, Run>} */
  const known = new Map()
  for (const run of runs) {
    const earlier = known.get(run.tick ?? 0)
    if (earlier !== undefined) violations.push(`${nameOf(run)} and run ${earlier.id} are of the same tick`)
    known.set(run.tick ?? 0, run)
  }
  const skipped = await skippedTicks(operator, id, anchor + 1_000, cursor)
  for (let tick = anchor + 1_000; tick <= cursor; tick += 1_000) {
    counts.ticks += 1
    if (known.has(tick)) continue
    if (skipped.has(tick)) counts.skipped += 1
    else {
      const { text } = await operator.schedules.explain(id, new Date(tick))
      violations.push(`tick ${new Date(tick).toISOString()} of ${id} is lost: ${text}`)
    }
  }
}

/**
 * @param {import('../../dist/index.js').Belfry} operator
 * @param {string} id
 * @param {number} from
 * @param {number} to
 */
async function skippedTicks(operator, id, from, to) {
  /** @type {Set<number>} */
  const skipped = new Set()
  /** @type {Date | undefined} */
  let next = new Date(from)
  while (next !== undefined && next.getTime() <= to) {
    /** @type {import('../../dist/index.js').Ticks} */
    const page = await operator.schedules.ticks(id, { from: next, to: new Date(to), limit: 1_000 })
    for (const { at, status } of page.ticks) if (status === 'skipped') skipped.add(at.getTime())
    next = page.next
  }
  return skipped
}

/**
 * Each attempt starts once, and only the newest one settles, once.
 * @param {readonly Line[]} lines
 * @param {ReadonlyMap<string, Run>} runs
 * @param {string[]} violations
 */
function checkLog(lines, runs, violations) {
  const runOfEvent = new Map()
  const eventOfRun = new Map()
  const starts = new Set()
  const settled = new Set()
  for (const { kind, run = '', event, attempt, token } of lines) {
    if (kind === 'start') {
      if (runOfEvent.has(event) && runOfEvent.get(event) !== run) violations.push(`event ${event} belongs to two runs`)
      runOfEvent.set(event, run)
      // Whatever was lost: who dedupes by the id must never drop a real event.
      if ((eventOfRun.get(run) ?? event) !== event) violations.push(`the id ${run} was given to two runs`)
      eventOfRun.set(run, event)
      if (starts.has(`${run}/${attempt}`)) violations.push(`attempt ${attempt} of run ${run} started twice`)
      starts.add(`${run}/${attempt}`)
    } else if (kind === 'settled') {
      const known = runs.get(run)
      if (settled.has(run)) violations.push(`run ${run} was settled twice`)
      settled.add(run)
      if (known === undefined) violations.push(`run ${run} was settled, and the store does not know it`)
      else if (known.token !== token)
        violations.push(`${nameOf(known)} was settled by a stale attempt (token ${token})`)
    }
  }
}

/**
 * Of each key, the attempts that succeeded never overlap, and their tokens grow.
 * @param {readonly Line[]} lines
 * @param {ReadonlyMap<string, Run>} runs
 * @param {string[]} violations
 */
function checkExclusive(lines, runs, violations) {
  /** @type {Map<string, { run: Run, token: number, start: number, end: number }[]>} */
  const byKey = new Map()
  /** @type {Map<string, number>} */
  const startedAt = new Map()
  for (const { kind, run: id = '', token = 0, t } of lines) {
    const run = runs.get(id)
    if (run?.key === undefined || run.state !== 'succeeded' || run.token !== token) continue
    if (kind === 'start') startedAt.set(id, t)
    else if (kind === 'end') {
      const intervals = byKey.get(run.key.name) ?? []
      intervals.push({ run, token, start: startedAt.get(id) ?? t, end: t })
      byKey.set(run.key.name, intervals)
    }
  }
  for (const [key, intervals] of byKey) {
    intervals.sort((a, b) => a.start - b.start)
    for (let at = 1; at < intervals.length; at += 1) {
      const [one, two] = [intervals[at - 1], intervals[at]]
      if (one === undefined || two === undefined) continue
      if (two.start < one.end) violations.push(`${nameOf(one.run)} and ${nameOf(two.run)} of ${key} overlapped`)
      if (two.token <= one.token) violations.push(`the token of ${key} fell from ${one.token} to ${two.token}`)
    }
  }
}

/**
 * The processes' clocks really had the configured skews.
 * @param {readonly Line[]} lines
 * @param {readonly number[]} skews
 * @param {string[]} violations
 */
function checkClocks(lines, skews, violations) {
  const offset = Date.now() - monotonicMs()
  for (const { kind, t, clock = 0, slot = 0 } of lines) {
    if (kind !== 'up') continue
    const skew = clock - (t + offset)
    const meant = skews[slot] ?? 0
    if (Math.abs(skew - meant) > 3_000)
      violations.push(`the clock of process ${slot} is off by ${skew}, not ${meant} ms`)
  }
}

/** How long event loops were blocked, and how many leases were lost, in processes that were not stopped. */
function delays(/** @type {Evidence} */ { lines, workers }) {
  /** @type {Map<number, number>} */
  const upAt = new Map()
  for (const { kind, pid, t } of lines) if (kind === 'up') upAt.set(pid, t)
  /** A process is expected to be late while it is stopped or just starting. @param {Line} line */
  const isExcused = ({ pid, t }) =>
    t < (upAt.get(pid) ?? Number.POSITIVE_INFINITY) + 1_000 ||
    workers.stops.some((stop) => stop.pid === pid && t >= stop.from && t <= stop.to + 2_500)
  const unexcused = lines.filter((line) => (line.kind === 'blocked' || line.kind === 'lost') && !isExcused(line))
  const blocked = unexcused.filter(({ kind }) => kind === 'blocked').map(({ lateMs = 0 }) => lateMs)
  return { blocked: blocked.length, blockedMs: Math.max(0, ...blocked), lost: unexcused.length - blocked.length }
}
