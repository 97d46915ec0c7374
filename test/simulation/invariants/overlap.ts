/** Ticks of a schedule that never allowed overlap run one after another, retries included. */
import type { Chronicle, EntryOf } from '../chronicle.js'

const APART = 'ticks of a schedule that allows no overlap do not overlap'

type Step = EntryOf<'claimed' | 'settled'>

interface Span {
  readonly first: EntryOf<'claimed'>
  last: Step
}

export function checkOverlap(chronicle: Chronicle): void {
  const allowing = new Set(
    chronicle.of('put').flatMap(({ schedule, definition }) => (definition.overlap === 'allow' ? [schedule] : [])),
  )
  const latest = new Map<string, Span>()
  for (const span of spans(chronicle)) {
    const { schedule = '', run } = span.first
    if (allowing.has(schedule) || chronicle.touched.has(run)) continue
    const before = latest.get(schedule)
    if (before !== undefined && before.last.order > span.first.order) {
      const text = `${schedule}: ${run} began before ${before.first.run} had ended`
      chronicle.violated(APART, text, run, before.first.run)
    }
    if (before === undefined || before.last.order < span.last.order) latest.set(schedule, span)
  }
}

/** The time of each tick's run, from its first claim to its last accepted settlement. */
function spans(chronicle: Chronicle): Span[] {
  const found = new Map<string, Span>()
  for (const step of chronicle.of('claimed', 'settled')) {
    const span = found.get(step.run)
    if (span !== undefined) span.last = step
    else if (step.kind === 'claimed' && step.origin === 'tick') found.set(step.run, { first: step, last: step })
  }
  return [...found.values()]
}
