// @ts-check
/** Measures how soon another process took over the runs of a killed one. */
import { groupBy } from './group-by.js'
import { monotonicMs } from './monotonic.js'

/** The promised limit from the kill to the start of the next attempt, in leases. */
const MOST_LEASES = 1.5
/** The steps of a takeover: the sweep and the claim. A slow machine may delay each of them as it delays other runs. */
const STEPS = 2

/**
 * @typedef {import('./verify.js').Line} Line
 * @param {import('./verify.js').Evidence} evidence
 * @param {ReadonlyMap<string, import('./verify.js').Run>} runs
 * @param {string[]} late
 */
export function measureTakeovers({ lines, workers, history, leaseMs, frozenHoldsStore }, runs, late) {
  /** @type {Map<string, Line>} */
  const starts = new Map()
  for (const line of lines) if (line.kind === 'start') starts.set(`${line.run}/${line.attempt}`, line)
  const shared = sharedKeys(runs)
  const over = new Set(lines.filter(isOver).map(({ pid, run, token }) => `${pid}/${run}/${token}`))
  const usualLateness = lateness(lines, runs)
  let takeoversMeasured = 0
  let takeoverMs = 0
  let lateBesidesMs = 0
  for (const { pid, at } of workers.kills) {
    for (const line of starts.values()) {
      // With a shared key, another run of the key may start first.
      if (shared.has(runs.get(line.run ?? '')?.key?.name ?? '')) continue
      if (line.pid !== pid || over.has(`${pid}/${line.run}/${line.token}`)) continue
      const next = starts.get(`${line.run}/${(line.attempt ?? 0) + 1}`)
      // Not a takeover after this kill: the run was settled just before it, or lost earlier while its process was
      // stopped.
      if (next === undefined || next.t < at || isExcused(at, next)) continue
      const tookMs = Math.round(next.t - at)
      takeoversMeasured += 1
      takeoverMs = Math.max(takeoverMs, tookMs)
      if (tookMs <= MOST_LEASES * leaseMs) continue
      const lateMs = usualLateness(at, next.t)
      lateBesidesMs = Math.max(lateBesidesMs, lateMs)
      if (tookMs <= MOST_LEASES * leaseMs + STEPS * lateMs) continue
      const beside = `${MOST_LEASES} leases, and runs were usually ${lateMs} ms late then`
      late.push(`${line.event} was taken over ${tookMs} ms after kill -9 of ${pid}: more than ${beside}`)
    }
  }
  return { kills: workers.kills.length, takeoversMeasured, takeoverMs, lateBesidesMs }

  /**
   * A takeover is impossible while the store is down, or while a frozen process may hold the store; and the process
   * that takes over may itself have been stopped.
   * @param {number} killedAt
   * @param {Line} next
   */
  function isExcused(killedAt, next) {
    const during = history.outages.some(({ from, to }) => from <= next.t && to + leaseMs >= killedAt)
    const interfering = workers.stops.filter(({ pid, isFrozen }) => pid === next.pid || (isFrozen && frozenHoldsStore))
    return during || interfering.some(({ from, to }) => from <= next.t && to >= killedAt)
  }
}

/** Keys that several schedules share. @param {ReadonlyMap<string, import('./verify.js').Run>} runs */
function sharedKeys(runs) {
  const keyed = [...runs.values()].filter(({ key }) => key !== undefined)
  const byKey = groupBy(keyed, ({ key }) => key?.name)
  return new Set(
    [...byKey].filter(([, of]) => of.some(({ schedule }) => schedule !== of[0]?.schedule)).map(([key]) => key),
  )
}

/**
 * Returns how late ticks started within a period: the median of first attempts without a key, which wait for no other
 * run.
 * @param {readonly Line[]} lines
 * @param {ReadonlyMap<string, import('./verify.js').Run>} runs
 */
function lateness(lines, runs) {
  // The store runs on this machine, so it uses the same clock.
  const offset = Date.now() - monotonicMs()
  const starts = lines.flatMap(({ kind, t, run = '', attempt }) => {
    const { key, tick } = runs.get(run) ?? {}
    const counts = kind === 'start' && attempt === 1 && key === undefined && tick !== undefined
    return counts ? [{ t, lateMs: t + offset - tick }] : []
  })
  return (/** @type {number} */ from, /** @type {number} */ to) => {
    const within = starts.filter(({ t }) => t >= from && t <= to)
    const late = within.map(({ lateMs }) => lateMs).sort((one, other) => one - other)
    return Math.max(0, Math.round(late[Math.floor(late.length / 2)] ?? 0))
  }
}

/** Whether the process itself saw the attempt end. @param {Line} line */
function isOver({ kind }) {
  return kind === 'settled' || kind === 'stale'
}
