/** Puts many schedules in batches. A store writes each batch whole or not at all. */
import { BelfryError } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import type { ScheduleDefinition } from '../../core/schedules/schedule.js'
import type { PutResult, ScheduleWrite, Store } from '../../core/store.js'
import { type PutOutcome, putOutcome } from './put-outcome.js'
import type { ScheduleInput } from './schedule-input.js'

export interface PutManyOptions {
  /**
   * What an entry that is refused does: `throw` (default) ends the call with its error, and later batches are not written;
   * `skip` leaves it out, writes the others, and returns a `PutRefusal` in its place.
   */
  readonly whenRefused?: 'throw' | 'skip'
}

/** An entry of `putMany` that was not written. */
export interface PutRefusal {
  readonly outcome: 'refused'
  readonly id: string
  readonly error: BelfryError
}

type Entry = readonly [id: string, input: ScheduleInput]
type Parse = (id: string, input: ScheduleInput) => Promise<ScheduleDefinition>

const BATCH = 1_000

export async function putAll(store: Store, parse: Parse, entries: readonly Entry[]): Promise<readonly PutOutcome[]> {
  const writes = await inTurns(entries, async ([id, input]) => ({ id, definition: await parse(id, input) }))
  const batches = inBatches(writes)
  const outcomes: PutOutcome[][] = []
  let next = 0
  const putNext = async (): Promise<void> => {
    for (let at = next; at < batches.length; at = next) {
      next += 1
      outcomes[at] = await putBatch(store, batches[at] ?? []).catch((error: unknown) => {
        next = batches.length
        throw error
      })
    }
  }
  // The store writes one batch while the next is prepared, unless a later batch may change a schedule of an earlier one.
  const distinct = new Set(writes.map(({ id }) => id)).size === writes.length
  await Promise.all(distinct ? [putNext(), putNext()] : [putNext()])
  return outcomes.flat()
}

export async function putAccepted(
  store: Store,
  parse: Parse,
  entries: readonly Entry[],
): Promise<readonly (PutOutcome | PutRefusal)[]> {
  const outcomes: (PutOutcome | PutRefusal)[] = []
  for (const batch of inBatches(entries)) {
    const parsed = await inTurns(batch, async ([id, input]) => {
      try {
        return { id, definition: await parse(id, input) }
      } catch (error) {
        return refusal(id, error)
      }
    })
    const written = await putHalves(
      store,
      parsed.filter((each) => 'definition' in each),
    )
    let at = 0
    for (const each of parsed) outcomes.push('outcome' in each ? each : (written[at++] as PutOutcome | PutRefusal))
  }
  return outcomes
}

function inBatches<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  const batches: (readonly Item[])[] = []
  for (let at = 0; at < items.length; at += BATCH) batches.push(items.slice(at, at + BATCH))
  return batches
}

async function putBatch(store: Store, writes: readonly ScheduleWrite[]): Promise<PutOutcome[]> {
  const results: readonly PutResult[] = await store.schedules.put(writes)
  return writes.map((write, at) => putOutcome(write, results[at]))
}

/** Halves a batch that the store refuses until the refused entries stand alone. */
async function putHalves(
  store: Store,
  writes: readonly ScheduleWrite[],
): Promise<readonly (PutOutcome | PutRefusal)[]> {
  if (writes.length === 0) return []
  try {
    return await putBatch(store, writes)
  } catch (error) {
    const refused = refusal(writes[0]?.id ?? '', error)
    if (writes.length === 1) return [refused]
    const middle = writes.length >> 1
    return [...(await putHalves(store, writes.slice(0, middle))), ...(await putHalves(store, writes.slice(middle)))]
  }
}

/** An outage is not a refusal: a store that does not answer, or is closed, fails the whole call. */
function refusal(id: string, error: unknown): PutRefusal {
  const isOfStore = error instanceof BelfryError && (error.code.startsWith('STORE_') || error.code === 'NOT_RUNNING')
  if (error instanceof BelfryError && !isOfStore) return { outcome: 'refused', id, error }
  throw error
}
