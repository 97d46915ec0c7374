/**
 * A record in the store lists the sinks that a process cannot reach, for other processes to read. The process writes it
 * when the list changes, and again every few seconds. The record expires, so the record of a dead process disappears.
 *
 * The record has durations, not instants, because the writer's clock may be wrong. A reader subtracts them from
 * `writtenAt`, which is the store's time.
 *
 *     { "process": "host-1:4711", "sinks": [{ "sink": "kafka", "forMs": 92000, "error": "no leader" }] }
 */
import type { Json } from '../checks/json.js'
import type { StoredRecord } from './record.js'

export const OUTAGE_KIND = 'sink-outages'
export const OUTAGE_TTL_MS = 60_000
/** At this interval a record outlives three failed writes. */
export const OUTAGE_REPEAT_MS = 15_000
const MAX_SINKS = 100
const MAX_MESSAGE = 500

export interface OutageReport {
  readonly sink: string
  /** How long the outage had lasted when the record was written. */
  readonly forMs: number
  readonly error: string
}

/** An outage that another process reported. */
export interface ReportedOutage {
  readonly sink: string
  readonly since: number
  readonly error: string
  /** The process that cannot reach the sink, as `host:pid`. */
  readonly process: string
}

export function outageBody(process: string, outages: readonly OutageReport[]): Json {
  const sinks = outages.slice(0, MAX_SINKS).map(({ sink, forMs, error }) => ({ sink, forMs, error: shortened(error) }))
  return { process, sinks }
}

/** Empty for a record that a release with another layout wrote. */
export function reportedOutages({ body, writtenAt }: StoredRecord): readonly ReportedOutage[] {
  const { process, sinks } = (body ?? {}) as { readonly process?: Json; readonly sinks?: Json }
  if (typeof process !== 'string' || !Array.isArray(sinks)) return []
  return sinks.flatMap((each: Json) => {
    const { sink, forMs, error } = (each ?? {}) as Partial<Record<keyof OutageReport, Json>>
    if (typeof sink !== 'string' || typeof forMs !== 'number' || typeof error !== 'string') return []
    return [{ sink, since: writtenAt - forMs, error, process }]
  })
}

/** Removes passwords from URLs, and limits the length. */
function shortened(message: string): string {
  const plain = message.replace(/([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):[^\s@/]*@/gi, '$1:[redacted]@')
  return plain.length > MAX_MESSAGE ? `${plain.slice(0, MAX_MESSAGE)}…` : plain
}
