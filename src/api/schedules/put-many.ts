/** Writes many schedules of which some may be refused: each is told apart, and the others are written. */
import { BelfryError } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import type { ScheduleDefinition } from '../../core/schedule.js'
import type { PutResult, ScheduleWrite, Store } from '../../core/store.js'
import type { ScheduleInput } from './schedule-input.js'

export type EachResult =
  | { readonly outcome: 'created' | 'updated' | 'unchanged' }
  | { readonly outcome: 'refused'; readonly error: BelfryError }

type Parse = (id: string, input: ScheduleInput) => Promise<ScheduleDefinition>

export async function putEach(
  store: Store,
  parse: Parse,
  entries: readonly (readonly [id: string, input: ScheduleInput])[],
): Promise<EachResult[]> {
  const results: EachResult[] = []
  const writes: ScheduleWrite[] = []
  const places: number[] = []
  const parsed = await inTurns(entries, async ([id, input]) => {
    try {
      return { id, definition: await parse(id, input) }
    } catch (error) {
      return refused(error)
    }
  })
  for (const [at, one] of parsed.entries()) {
    if ('outcome' in one) results[at] = one
    else {
      writes.push(one)
      places.push(at)
    }
  }
  const written = await putHalves(store, writes)
  for (const [at, place] of places.entries()) results[place] = written[at] as EachResult
  return results
}

/** A store writes a batch whole or not at all: halves of it find the one that it refuses. */
async function putHalves(store: Store, writes: readonly ScheduleWrite[]): Promise<EachResult[]> {
  if (writes.length === 0) return []
  try {
    return (await store.schedules.put(writes)).map(eachResult)
  } catch (error) {
    const refusal = refused(error)
    if (writes.length === 1) return [refusal]
    const middle = writes.length >> 1
    return [...(await putHalves(store, writes.slice(0, middle))), ...(await putHalves(store, writes.slice(middle)))]
  }
}

function eachResult({ outcome }: PutResult): EachResult {
  // Nobody asked for a version, so there is none to conflict with.
  return { outcome: outcome === 'conflict' ? 'unchanged' : outcome }
}

/** Refusals are values; a store that does not answer, or is closed, is not one. */
function refused(error: unknown): Extract<EachResult, { outcome: 'refused' }> {
  const isOfStore = error instanceof BelfryError && (error.code.startsWith('STORE_') || error.code === 'NOT_RUNNING')
  if (error instanceof BelfryError && !isOfStore) return { outcome: 'refused', error }
  throw error
}
