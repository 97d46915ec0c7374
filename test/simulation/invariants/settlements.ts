/** A run succeeds at most once, and the store accepts no settlement of the run after its success. */
import type { Chronicle, EntryOf } from '../chronicle.js'

const ONCE = 'a run succeeds at most once'
const HONEST = 'what observers are told is what was settled'

export function checkSettlements(chronicle: Chronicle): void {
  const succeeded = new Map<string, EntryOf<'settled'>>()
  const accepted = new Set<string>()
  for (const entry of chronicle.of('settled', 'claimed', 'emitted')) {
    const first = succeeded.get(entry.run)
    if (entry.kind === 'emitted') checkEmitted(chronicle, entry, accepted)
    else if (entry.kind === 'claimed') {
      if (first !== undefined) chronicle.violated(ONCE, `${entry.run} was claimed after it had succeeded`, entry.run)
    } else {
      accepted.add(`${entry.run}@${entry.token}`)
      if (first !== undefined && first.token !== entry.token) {
        chronicle.violated(ONCE, `${entry.run} was settled by ${first.token} and then by ${entry.token}`, entry.run)
      }
      if (entry.outcome === 'succeeded') succeeded.set(entry.run, first ?? entry)
    }
  }
}

function checkEmitted(
  chronicle: Chronicle,
  { event, run, token, slot }: EntryOf<'emitted'>,
  accepted: Set<string>,
): void {
  if (event === 'run:stale' || accepted.has(`${run}@${token}`)) return
  chronicle.violated(HONEST, `${slot} told ${event} of ${run}, which the store had refused`, run)
}
