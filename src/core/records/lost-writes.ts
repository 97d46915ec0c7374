/**
 * A record in the store says that an instance has seen the store go back: what was written between two instants of the
 * store's time may be lost. `belfry doctor` reads it.
 *
 *     { "from": 1700000000000, "until": 1700000004200, "process": "host-1:4711" }
 */
import type { Json } from '../checks/json.js'
import type { StoredRecord } from './record.js'

export const LOST_WRITES_KIND = 'lost-writes'
/** As long as the default history: so long the doctor speaks of it. */
export const LOST_WRITES_TTL_MS = 7 * 24 * 3_600_000

export interface LostWritesReport {
  /** The last write of the instance that the store has kept. */
  readonly from: number
  /** The store's time when the loss was noticed, as the instance knew it before. */
  readonly until: number
  /** The process that noticed it, as `host:pid`. */
  readonly process: string
}

export function lostWritesBody({ from, until, process }: LostWritesReport): Json {
  return { from, until, process }
}

/** Undefined for a record that a release with another layout wrote. */
export function reportedLostWrites({ body }: StoredRecord): LostWritesReport | undefined {
  const { from, until, process } = (body ?? {}) as Partial<Record<keyof LostWritesReport, Json>>
  if (typeof from !== 'number' || typeof until !== 'number' || typeof process !== 'string') return undefined
  return { from, until, process }
}
