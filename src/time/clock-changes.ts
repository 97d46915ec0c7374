/** What clock changes did to the ticks of a cron expression: which local times they moved, repeated or dropped. */
import { parseCron } from './cron/parse.js'
import type { CronSpec } from './timeline.js'
import { timeline } from './timeline.js'
import { instantOfLocal, MAX_OFFSET_MS, type Zone, zone } from './zone.js'

const EVERY_HOUR = 0xffffff

export interface ClockChange {
  /** `moved`: the clock skips the local time. `first`, `second`: the clock shows it twice. `dropped`: there is no tick. */
  readonly kind: 'moved' | 'first' | 'second' | 'dropped'
  /** The local time that the expression names, as if it were UTC. */
  readonly local: number
  /** The tick, or where a dropped one would have been. */
  readonly at: number
}

/**
 * Looks at all ticks of `spec` after `after`, up to and including the last of `ticks`. The same expression in UTC gives the
 * local times that it names.
 */
export function clockChanges(
  { cron, timezone = 'UTC' }: CronSpec,
  after: number,
  ticks: readonly number[],
): ClockChange[] {
  // With every hour allowed, the ticks follow real time, and no change is worth a word.
  if (parseCron(cron).hours === EVERY_HOUR) return []
  const local = zone(timezone)
  const known = new Set(ticks)
  const last = ticks.at(-1) ?? after
  const from = after + local.segmentAt(after).offset
  const to = last + local.segmentAt(last).offset
  return timeline({ cron })
    .between(from, to, ticks.length * 2 + 1)
    .flatMap((named) => changesOf(named, local, known))
}

function changesOf(local: number, zone: Zone, ticks: ReadonlySet<number>): ClockChange[] {
  const instants = instantsOf(zone, local)
  const [first, second] = instants
  if (first === undefined) {
    const at = instantOfLocal(zone, local)
    return [{ kind: ticks.has(at) ? 'moved' : 'dropped', local, at }]
  }
  if (second === undefined) return []
  const changes: ClockChange[] = [
    { kind: 'first', local, at: first },
    { kind: 'second', local, at: second },
  ]
  return changes.filter(({ at }) => ticks.has(at))
}

/** The instants at which the clock shows a local time: none in a gap, two where it is repeated. */
function instantsOf(zone: Zone, local: number): number[] {
  const instants: number[] = []
  let segment = zone.segmentAt(local - MAX_OFFSET_MS)
  for (; segment.start <= local + MAX_OFFSET_MS; segment = zone.segmentAt(segment.end)) {
    const instant = local - segment.offset
    if (instant >= segment.start && instant < segment.end) instants.push(instant)
    if (segment.end === Number.POSITIVE_INFINITY) break
  }
  return instants
}
