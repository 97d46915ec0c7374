// @ts-check
/** What must hold, whatever happened: the store's account and the handlers' own log, side by side. */

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
 *
 * @typedef {object} Findings
 * @property {string[]} violations
 * @property {Record<string, number>} counts
 */

/**
 * @param {import('../../dist/index.js').Belfry} operator
 * @param {readonly string[]} ids
 * @param {readonly Line[]} lines
 * @param {readonly import('./chaos.js').Stop[]} stops
 * @returns {Promise<Findings>}
 */
export async function verify(operator, ids, lines, stops) {
  /** @type {string[]} */
  const violations = []
  const counts = {
    ticks: 0,
    runs: 0,
    attempts: 0,
    takeovers: 0,
    stale: 0,
    skipped: 0,
    blocked: 0,
    blockedMs: 0,
    lost: 0,
  }
  const ended = new Set(lines.filter(({ kind }) => kind === 'end').map(({ run }) => run))
  /** @type {Map<string, { key: string, token: number }>} */
  const committed = new Map()
  for (const id of ids) {
    const runs = await runsOf(operator, id)
    await checkTicks(operator, id, runs, violations, counts)
    for (const run of runs) {
      counts.runs += 1
      counts.attempts += run.attempt
      counts.takeovers += run.takeovers
      if (run.state === 'succeeded' && !ended.has(run.id)) violations.push(`${run.id} succeeded without its handler`)
      if (run.state === 'failed') violations.push(`${run.id} failed: ${run.error?.message}`)
      if (run.state === 'succeeded' && run.key) committed.set(run.id, { key: run.key.name, token: run.token ?? 0 })
    }
  }
  checkLog(lines, violations)
  checkExclusive(lines, committed, violations)
  counts.stale = lines.filter(({ kind }) => kind === 'stale').length
  const unexcused = lines.filter((line) => !isExcused(line, lines, stops))
  counts.lost = unexcused.filter(({ kind }) => kind === 'lost').length
  const blocked = unexcused.filter(({ kind }) => kind === 'blocked').map(({ lateMs = 0 }) => lateMs)
  counts.blocked = blocked.length
  counts.blockedMs = Math.max(0, ...blocked)
  return { violations, counts }
}

/** @param {import('../../dist/index.js').Belfry} operator @param {string} schedule */
async function runsOf(operator, schedule) {
  /** @type {import('../../dist/index.js').Run[]} */
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
 * Every tick of the timeline is there exactly once: as a run, or inside a skipped range.
 * @param {import('../../dist/index.js').Belfry} operator
 * @param {string} id
 * @param {readonly import('../../dist/index.js').Run[]} runs
 * @param {string[]} violations
 * @param {{ ticks: number, skipped: number }} counts
 */
async function checkTicks(operator, id, runs, violations, counts) {
  const schedule = await operator.schedules.get(id)
  if (schedule === undefined) {
    violations.push(`schedule ${id} is gone`)
    return
  }
  const ticks = runs.map(({ tick = 0 }) => tick)
  if (new Set(ticks).size !== ticks.length) violations.push(`a tick of ${id} has two runs`)
  const known = new Set(ticks)
  for (let tick = schedule.anchor + 1_000; tick <= schedule.cursor; tick += 1_000) {
    counts.ticks += 1
    if (known.has(tick)) continue
    const explanation = await operator.schedules.explain(id, new Date(tick))
    if (explanation.status === 'skipped') counts.skipped += 1
    else violations.push(`tick ${tick} of ${id} is lost: ${explanation.text}`)
  }
}

/** @param {readonly Line[]} lines @param {string[]} violations */
function checkLog(lines, violations) {
  const runOfEvent = new Map()
  const starts = new Set()
  const settled = new Set()
  for (const { kind, run, event, attempt } of lines) {
    if (kind === 'start') {
      if (runOfEvent.has(event) && runOfEvent.get(event) !== run) violations.push(`event ${event} belongs to two runs`)
      runOfEvent.set(event, run)
      if (starts.has(`${run}/${attempt}`)) violations.push(`attempt ${attempt} of ${run} started twice`)
      starts.add(`${run}/${attempt}`)
    } else if (kind === 'settled') {
      if (settled.has(run)) violations.push(`${run} was settled twice`)
      settled.add(run)
    }
  }
}

/**
 * Attempts that were committed never overlap others of their key, and their tokens grow.
 * @param {readonly Line[]} lines
 * @param {ReadonlyMap<string, { key: string, token: number }>} committed
 * @param {string[]} violations
 */
function checkExclusive(lines, committed, violations) {
  /** @type {Map<string, { run: string, token: number, start: number, end: number }[]>} */
  const byKey = new Map()
  /** @type {Map<string, number>} */
  const startedAt = new Map()
  for (const { kind, run = '', token = 0, t } of lines) {
    const commit = committed.get(run)
    if (commit === undefined || commit.token !== token) continue
    if (kind === 'start') startedAt.set(run, t)
    else if (kind === 'end') {
      const intervals = byKey.get(commit.key) ?? []
      intervals.push({ run, token, start: startedAt.get(run) ?? t, end: t })
      byKey.set(commit.key, intervals)
    }
  }
  for (const [key, intervals] of byKey) {
    intervals.sort((a, b) => a.start - b.start)
    for (let at = 1; at < intervals.length; at += 1) {
      const [one, two] = [intervals[at - 1], intervals[at]]
      if (one === undefined || two === undefined) continue
      if (two.start < one.end) violations.push(`${one.run} and ${two.run} of ${key} overlapped`)
      if (two.token <= one.token) violations.push(`the token of ${key} fell from ${one.token} to ${two.token}`)
    }
  }
}

/**
 * A process that was stopped is late, and so is one that is just starting.
 * @param {Line} line
 * @param {readonly Line[]} lines
 * @param {readonly import('./chaos.js').Stop[]} stops
 */
function isExcused({ pid, t }, lines, stops) {
  if (stops.some((stop) => stop.pid === pid && t >= stop.from && t <= stop.to + 2_500)) return true
  const up = lines.find((line) => line.pid === pid && line.kind === 'up')
  return up === undefined || t < up.t + 1_000
}
