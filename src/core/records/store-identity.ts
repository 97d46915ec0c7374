/**
 * The store's identity is a random id, which the first instance with a sink writes. Brokers drop repeated messages by
 * an id that contains it, because two stores may send to one broker and have schedules of the same name.
 */
import { randomBytes } from 'node:crypto'
import type { RecordStore } from '../store.js'

const BYTES = 9

/** Safe to repeat: the first instance that writes the record wins, and all instances read the same id. */
export async function storeIdentity(records: RecordStore): Promise<string> {
  const made = randomBytes(BYTES).toString('base64url')
  const { record } = await records.put({ kind: 'belfry', id: 'identity', body: made, ifAbsent: true })
  return String(record.body)
}
