/**
 * What tells a store from all others: made by the first instance that delivers events, and kept in the store. Brokers that
 * drop repetitions by an id get it with the event's id, because two stores may have schedules of the same name.
 */
import { randomBytes } from 'node:crypto'
import type { RecordStore } from './store.js'

const BYTES = 9

/** Safe to repeat, and the same for all instances: the first that writes it wins. */
export async function storeIdentity(records: RecordStore): Promise<string> {
  const made = randomBytes(BYTES).toString('base64url')
  const { record } = await records.put({ kind: 'belfry', id: 'identity', body: made, ifAbsent: true })
  return String(record.body)
}
