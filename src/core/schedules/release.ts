/**
 * Decides which release's schedules are in force. During a deploy two releases of an app run side by side and declare
 * different sets. The newest live release wins, so a late restart of the old release does not bring its schedules back.
 */
import type { DeclaredSet } from '../store.js'

/** A set counts as live until this long after the newest beat of an instance with it. */
export const GONE_AFTER_MS = 60_000

const byNumberAndText = new Intl.Collator('en', { numeric: true })

export function liveSets(sets: readonly DeclaredSet[], now: number): readonly DeclaredSet[] {
  return sets.filter(({ aliveAt }) => now - aliveAt <= GONE_AFTER_MS)
}

/** The newest live set: by release where both have one, else by when the store first saw it. Start times do not count. */
export function setInForce(sets: readonly DeclaredSet[], now: number): DeclaredSet | undefined {
  return liveSets(sets, now).reduce<DeclaredSet | undefined>(
    (newest, set) => (newest === undefined || isNewer(set, newest) ? set : newest),
    undefined,
  )
}

function isNewer(one: DeclaredSet, other: DeclaredSet): boolean {
  const order =
    one.release === undefined || other.release === undefined ? 0 : byNumberAndText.compare(one.release, other.release)
  return order === 0 ? one.firstSeenAt > other.firstSeenAt : order > 0
}
