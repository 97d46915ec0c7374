/**
 * Small JSON records by kind and id, beside schedules and runs. The service keeps API tokens, sessions, answers to
 * repeatable requests and audit entries in them; the engine keeps logs of runs and outages of sinks.
 */

import type { Json } from '../checks/json.js'
import { failure, quote } from '../errors.js'

export interface StoredRecord {
  readonly kind: string
  readonly id: string
  readonly body: Json
  readonly writtenAt: number
  /** From this instant on the record is not found. */
  readonly expiresAt?: number
}

export interface RecordWrite {
  readonly kind: string
  readonly id: string
  readonly body: Json
  readonly ttlMs?: number
  /** Do not overwrite an existing record. */
  readonly ifAbsent?: boolean
}

export interface RecordQuery {
  readonly kind: string
  readonly after?: string
  readonly limit: number
  /** In descending order of id. */
  readonly backwards?: boolean
}

// All stores sort printable ASCII in the same order.
const NAME = /^[\x21-\x7e]{1,255}$/

/** Programs make the kinds and ids of records, so the rule is stricter than for names that users give. */
export function checkRecordName(name: string, what: 'kind' | 'id'): string {
  if (typeof name === 'string' && NAME.test(name)) return name
  throw failure(
    'NAME_INVALID',
    `the ${what} of a record is ${quote(name)}: use 1 to 255 printable ASCII characters, no spaces`,
  )
}
