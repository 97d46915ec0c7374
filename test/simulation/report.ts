import type { Chronicle, Entry, Violation } from './chronicle.js'
import type { Simulation } from './simulate.js'

const LINES = 40

/** The lines of the record that explain why a seed failed. */
export function report(seed: number, { violations, chronicle }: Simulation): string {
  const [first] = violations
  if (first === undefined) return `seed ${seed}: all invariants hold`
  const more = violations.slice(1, 6).map(({ invariant, text }) => `  and: ${invariant}: ${text}`)
  return [
    `seed ${seed} violates: ${first.invariant}`,
    `  ${first.text}`,
    ...more,
    ...(violations.length > 6 ? [`  and ${violations.length - 6} more`] : []),
    `last lines about ${first.about.join(', ') || 'everything'}:`,
    ...relevantLines(chronicle, first),
    `repeat it: SEED=${seed} npx vitest run test/simulation`,
  ].join('\n')
}

function relevantLines(chronicle: Chronicle, { about }: Violation): string[] {
  const names = about.map((name) => new RegExp(`(?<![\\w.])${name.replace(/[^\w]/g, '\\$&')}(?![\\w])`))
  const lines = chronicle.entries().map(lineOf)
  const relevant = names.length === 0 ? lines : lines.filter((line) => names.some((name) => name.test(line)))
  return relevant.slice(-LINES)
}

function lineOf({ at, order, kind, ...fact }: Entry): string {
  const text = 'text' in fact ? fact.text : JSON.stringify(fact)
  return `  ${new Date(at).toISOString().slice(11, 23)} #${order} ${kind} ${text}`
}
