/**
 * No tick is lost or duplicated. Expected ticks follow from the applied puts and removals and the timeline alone.
 * Actual ticks come from the history, from all claims, and from the skips.
 */
import type { SkipRange } from '../../../src/core/plan.js'
import type { Run } from '../../../src/core/run.js'
import type { Chronicle } from '../chronicle.js'
import type { Ending } from '../ending.js'
import { type Reign, reigns } from '../reigns.js'

const LOST = 'no tick is lost'
const DOUBLED = 'no tick is doubled'

/** Run ids by tick. */
type TickRuns = ReadonlyMap<number, ReadonlySet<string>>

export function checkTicks(chronicle: Chronicle, ending: Ending): void {
  for (const id of chronicle.schedules) {
    const runs = tickRuns(id, chronicle, ending)
    const found = reigns(chronicle, id, ending)
    const skips = skipsOf(chronicle, id, found, ending.skips.get(id) ?? [])
    for (const reign of found) checkReign(chronicle, reign, runs, skips.get(reign) ?? [])
  }
}

function tickRuns(id: string, chronicle: Chronicle, ending: Ending): TickRuns {
  const runs = new Map<number, Set<string>>()
  const add = ({ schedule, origin, tick }: Pick<Run, 'schedule' | 'origin' | 'tick'>, run: string) => {
    if (schedule === id && origin === 'tick' && tick !== undefined)
      runs.set(tick, (runs.get(tick) ?? new Set()).add(run))
  }
  for (const run of ending.runs) add(run, run.id)
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
  found: readonly Reign[],
  ranges: readonly SkipRange[],
): Map<Reign, SkipRange[]> {
  const skips = new Map<Reign, SkipRange[]>()
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

function checkReign(chronicle: Chronicle, reign: Reign, runs: TickRuns, skips: readonly SkipRange[]): void {
  const { schedule, ticks, limits } = reign
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
    chronicle.violated(invariant, `${text} (${reign.text})`, schedule, ...(runs.get(tick) ?? []))
  }
}

function iso(instant: number): string {
  return new Date(instant).toISOString()
}
