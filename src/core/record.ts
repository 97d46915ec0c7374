/**
 * Small records that are kept beside schedules and runs, by those who serve others: tokens of an API, the answers to
 * requests that may be repeated, who changed what. A kind is a shelf of its own, on which records stand by their id.
 */
import { failure, quote } from './errors.js'
import type { Json } from './json.js'

export interface StoredRecord {
  readonly kind: string
  readonly id: string
  readonly body: Json
  readonly writtenAt: number
  /** From then on it is as if it were not there. */
  readonly expiresAt?: number
}

export interface RecordWrite {
  readonly kind: string
  readonly id: string
  readonly body: Json
  readonly ttlMs?: number
  /** Leaves a record alone that is there already. */
  readonly ifAbsent?: boolean
}

export interface RecordQuery {
  readonly kind: string
  readonly after?: string
  readonly limit: number
  /** From the last id to the first. */
  readonly backwards?: boolean
}

// Printable ASCII stands in the same order everywhere.
const NAME = /^[\x21-\x7e]{1,255}$/

/** Kinds and ids of records are given by programs, not by people. */
export function checkRecordName(name: string, what: 'kind' | 'id'): string {
  if (typeof name === 'string' && NAME.test(name)) return name
  throw failure(
    'NAME_INVALID',
    `the ${what} of a record is ${quote(name)}: use 1 to 255 printable ASCII characters, no spaces`,
  )
}
