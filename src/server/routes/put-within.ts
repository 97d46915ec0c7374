/** Puts the schedules of an import as far as the caller's quota has room for new ones. */
import type { PutRefusal } from '../../api/schedules/put-many.js'
import type { PutOutcome } from '../../api/schedules/put-outcome.js'
import type { ScheduleFields } from '../../api/schedules/schedule-input.js'
import type { Belfry } from '../../belfry.js'
import { BelfryError } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import type { Caller } from '../security/caller.js'
import type { Reservation, Usage } from '../security/usage.js'

type Entry = readonly [id: string, input: ScheduleFields]
type Result = PutOutcome | PutRefusal

/** One result per entry, in order. Entries beyond the quota are refused. */
export async function putWithin(
  belfry: Belfry,
  usage: Usage,
  caller: Caller,
  entries: readonly Entry[],
): Promise<readonly Result[]> {
  const places = await usage.reserve(caller, 'schedules', entries.length)
  let made = places.granted
  try {
    const isOver = places.granted < entries.length ? await beyond(belfry, places, entries) : () => false
    const taken = entries.filter(([id]) => !isOver(id))
    const written = await belfry.schedules.putMany(taken, { whenRefused: 'skip' })
    made = written.filter(({ outcome }) => outcome === 'created').length
    let at = 0
    return entries.map(([id]) => (isOver(id) ? refusal(id, places) : (written[at++] as Result)))
  } finally {
    places.end(made)
  }
}

/** Which of the ids are new and beyond the places. Schedules that exist need no place. */
async function beyond(belfry: Belfry, { granted }: Reservation, entries: readonly Entry[]) {
  const ids = [...new Set(entries.map(([id]) => id))]
  const isThere = await inTurns(ids, async (id) => (await belfry.schedules.get(id)) !== undefined)
  const surplus = new Set(ids.filter((_, at) => !isThere[at]).slice(granted))
  return (id: string) => surplus.has(id)
}

function refusal(id: string, places: Reservation): PutRefusal {
  const error = places.refusal()
  if (!(error instanceof BelfryError)) throw error
  return { outcome: 'refused', id, error }
}
