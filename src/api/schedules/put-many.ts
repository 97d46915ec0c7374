/** Puts many schedules in batches. A store writes each batch whole or not at all. */
import { BelfryError } from '../../core/errors.js'
import { inTurns } from '../../core/in-turns.js'
import type { ScheduleDefinition } from '../../core/schedules/schedule.js'
import type { PutResult, ScheduleWrite, Store } from '../../core/store.js'
import { type PutOutcome, putOutcome } from './put-outcome.js'
import type { ScheduleFields } from './schedule-input.js'

export interface PutManyOptions {
  /**
   * How the call treats a refused entry. `throw` (default) ends the call with the entry's error, and writes no later
   * batches. `skip` writes the other entries, and returns a `PutRefusal` in place of this one.
   */
  readonly whenRefused?: 'throw' | 'skip'
}

/** An entry of `putMany` that was not written. */
export interface PutRefusal {
  readonly outcome: 'refused'
  readonly id: string
  readonly error: BelfryError
}

type Entry = readonly [id: string, input: ScheduleFields]
type Parse = (id: string, input: ScheduleFields) => Promise<ScheduleDefinition>

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
  // While the store writes one batch, the next one is sent. If an id occurs twice, batches go one after the other, so
  // that the last entry wins.
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

/** Writes a batch. If the store refuses it, both halves are tried, until each refused entry stands alone. */
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

/** The refusal of one entry. An error of the store is no refusal: it fails the whole call. */
function refusal(id: string, error: unknown): PutRefusal {
  const isOfStore = error instanceof BelfryError && (error.code.startsWith('STORE_') || error.code === 'NOT_RUNNING')
  if (error instanceof BelfryError && !isOfStore) return { outcome: 'refused', id, error }
  throw error
}
