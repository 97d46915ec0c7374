/** A record's text: a line of JSON with when it was written and when it expires, then its body. */
import type { Json } from '../../../core/checks/json.js'
import type { StoredRecord } from '../../../core/records/record.js'

interface Head {
  readonly writtenAt: number
  readonly expiresAt?: number
}

export function toRecord(kind: string, id: string, stored: string): StoredRecord {
  const lineEnd = stored.indexOf('\n')
  const head = JSON.parse(stored.slice(0, lineEnd)) as Head
  return { kind, id, body: JSON.parse(stored.slice(lineEnd + 1)) as Json, ...head }
}
