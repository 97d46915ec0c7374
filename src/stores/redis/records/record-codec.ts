/**
 * The stored layout of a record, which is in the hash `record:<kind>` under its id: a line of JSON with when it was written
 * and when it expires, then its body.
 *
 *     {"writtenAt":1700000000000,"expiresAt":1700000060000}
 *     {"caller":"ci","action":"schedule.put",…}
 *
 * Scripts read and write it by `record-text.lua`.
 */
import type { Json } from '../../../core/checks/json.js'
import type { StoredRecord } from '../../../core/records/record.js'

export interface StoredRecordHead {
  readonly writtenAt: number
  readonly expiresAt?: number
}

export function toRecord(kind: string, id: string, stored: string): StoredRecord {
  const lineEnd = stored.indexOf('\n')
  const head = JSON.parse(stored.slice(0, lineEnd)) as StoredRecordHead
  return { kind, id, body: JSON.parse(stored.slice(lineEnd + 1)) as Json, ...head }
}
