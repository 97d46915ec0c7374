// @ts-check
/** How soon somebody else went on with what a killed process had been at. */

/** By the promise, from the kill to the next attempt's start. */
const MOST_LEASES = 1.5

/**
 * @typedef {import('./verify.js').Line} Line
 * @param {import('./verify.js').Evidence} evidence
 * @param {string[]} violations
 */
export function measureTakeovers({ lines, crew, history, leaseMs }, violations) {
  /** @type {Map<string, Line>} */
  const starts = new Map()
  for (const line of lines) if (line.kind === 'start') starts.set(`${line.run}/${line.attempt}`, line)
  const over = new Set(lines.filter(isOver).map(({ pid, run, token }) => `${pid}/${run}/${token}`))
  let takeoversMeasured = 0
  let takeoverMs = 0
  for (const { pid, at } of crew.kills) {
    for (const line of starts.values()) {
      if (line.pid !== pid || over.has(`${pid}/${line.run}/${line.token}`)) continue
      const next = starts.get(`${line.run}/${(line.attempt ?? 0) + 1}`)
      // One that was settled with the last breath has no next attempt; one that was stopped before had it earlier.
      if (next === undefined || next.t < at || isExcused(at, next)) continue
      const tookMs = Math.round(next.t - at)
      takeoversMeasured += 1
      takeoverMs = Math.max(takeoverMs, tookMs)
      if (tookMs > MOST_LEASES * leaseMs) {
        violations.push(
          `${line.event} was taken over ${tookMs} ms after kill -9 of ${pid}: more than ${MOST_LEASES} leases`,
        )
      }
    }
  }
  return { kills: crew.kills.length, takeoversMeasured, takeoverMs }

  /**
   * Nobody can take over while the store is down, and who goes on may have been stopped itself.
   * @param {number} killedAt
   * @param {Line} next
   */
  function isExcused(killedAt, next) {
    const during = history.outages.some(({ from, to }) => from <= next.t && to + leaseMs >= killedAt)
    return during || crew.stops.some(({ pid, from, to }) => pid === next.pid && from <= next.t && to >= killedAt)
  }
}

/** The process itself has seen the end of it. @param {Line} line */
function isOver({ kind }) {
  return kind === 'settled' || kind === 'stale'
}
