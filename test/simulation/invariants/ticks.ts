/**
 * No tick is lost or duplicated. Expected ticks follow from the applied puts and removals and the timeline alone.
 * Actual ticks come from the history, from all claims, and from the skips.
 */

import type { Run } from '../../../src/core/runs/run.js'
import type { SkipRange } from '../../../src/core/schedules/plan.js'
import type { Chronicle } from '../chronicle.js'
import type { FinalState } from '../final-state.js'
import { type TimelinePeriod, timelinePeriods } from '../timeline-periods.js'

const LOST = 'no tick is lost'
const DOUBLED = 'no tick is duplicated'

/** Run ids by tick. */
type TickRuns = ReadonlyMap<number, ReadonlySet<string>>

export function checkTicks(chronicle: Chronicle, finalState: FinalState): void {
  for (const id of chronicle.schedules) {
    const runs = tickRuns(id, chronicle, finalState)
    const found = timelinePeriods(chronicle, id, finalState)
    const skips = skipsOf(chronicle, id, found, finalState.skips.get(id) ?? [])
    for (const period of found) checkPeriod(chronicle, period, runs, skips.get(period) ?? [])
  }
}

function tickRuns(id: string, chronicle: Chronicle, finalState: FinalState): TickRuns {
  const runs = new Map<number, Set<string>>()
  const add = ({ schedule, origin, tick }: Pick<Run, 'schedule' | 'origin' | 'tick'>, run: string) => {
    if (schedule === id && origin === 'tick' && tick !== undefined)
      runs.set(tick, (runs.get(tick) ?? new Set()).add(run))
  }
  for (const run of finalState.runs) add(run, run.id)
  for (const run of chronicle.cancelled) add(run, run.id)
  for (const { run, schedule, tick, origin } of chronicle.of('claimed')) {
    if (schedule !== undefined && tick !== undefined) add({ schedule, tick, origin }, run)
  }
  return runs
}

/** Assigns each skip range to the timeline whose ticks it counts. */
function skipsOf(
  chronicle: Chronicle,
  id: string,
  found: readonly TimelinePeriod[],
  ranges: readonly SkipRange[],
): Map<TimelinePeriod, SkipRange[]> {
  const skips = new Map<TimelinePeriod, SkipRange[]>()
  for (const range of ranges) {
    const owner = found.find(({ ticks }) => counts(range, ticks))
    if (owner !== undefined) skips.set(owner, [...(skips.get(owner) ?? []), range])
    else chronicle.violated(LOST, `no timeline of ${id} has the ticks of the skip ${JSON.stringify(range)}`, id)
  }
  return skips
}

function counts({ from, to, count }: SkipRange, ticks: readonly number[]): boolean {
  const inside = ticks.filter((tick) => from <= tick && tick <= to)
  return inside.length === count && inside[0] === from && inside.at(-1) === to
}

function checkPeriod(chronicle: Chronicle, period: TimelinePeriod, runs: TickRuns, skips: readonly SkipRange[]): void {
  const { schedule, ticks, limits } = period
  let [recorded, accounted, hole] = [0, 0, Number.POSITIVE_INFINITY]
  for (const tick of ticks) {
    const made = runs.get(tick)?.size ?? 0
    const covering = skips.filter(({ from, to }) => from <= tick && tick <= to)
    if (made + covering.length > 1) {
      violated(DOUBLED, `${iso(tick)} of ${schedule}: ${made} runs, ${JSON.stringify(covering)}`, tick)
    }
    if (made > 0) recorded += 1
    if (made + covering.length > 0) accounted += 1
    else hole = Math.min(hole, tick)
    if (tick > hole && made + covering.length > 0) {
      violated(LOST, `${iso(hole)} of ${schedule} is neither a run nor a skip`, hole)
    }
  }
  const most = limits.reduce((sum, limit) => sum + limit, 0)
  if (recorded > most) violated(DOUBLED, `${schedule} has ${recorded} runs and was to have ${most}`)
  if (hole < Number.POSITIVE_INFINITY && accounted < Math.min(...limits)) {
    violated(LOST, `${iso(hole)} of ${schedule} is neither a run nor a skip, and nothing came after`, hole)
  }

  function violated(invariant: string, text: string, tick = 0): void {
    chronicle.violated(invariant, `${text} (${period.text})`, schedule, ...(runs.get(tick) ?? []))
  }
}

function iso(instant: number): string {
  return new Date(instant).toISOString()
}
