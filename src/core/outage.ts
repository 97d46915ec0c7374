/**
 * What one process tells the others of the sinks that it cannot reach: a record in the store, written when that changes and
 * again every few seconds. It runs out by itself, so a process that dies in an outage takes its word with it.
 *
 * Instants are told as lengths before and after the writing, because the writer's clock may be wrong: whoever reads the
 * record counts them from when the store says that it was written.
 */
import type { Json } from './json.js'
import type { StoredRecord } from './record.js'

export const OUTAGE_KIND = 'sink-outages'
export const OUTAGE_TTL_MS = 60_000
/** Three repetitions may get lost. */
export const OUTAGE_REPEAT_MS = 15_000
const MAX_SINKS = 100
const MAX_MESSAGE = 500

export interface OutageNote {
  readonly sink: string
  /** How long it had lasted. */
  readonly forMs: number
  readonly error: string
}

/** An outage as somebody else told it. */
export interface ToldOutage {
  readonly sink: string
  readonly since: number
  readonly error: string
  /** The process that cannot reach the sink, as `host:pid`. */
  readonly process: string
}

export function outageBody(process: string, outages: readonly OutageNote[]): Json {
  const sinks = outages.slice(0, MAX_SINKS).map(({ sink, forMs, error }) => ({ sink, forMs, error: shortened(error) }))
  return { process, sinks }
}

/** What cannot be read was written by another release, and says nothing. */
export function toldOutages({ body, writtenAt }: StoredRecord): readonly ToldOutage[] {
  const { process, sinks } = (body ?? {}) as { readonly process?: Json; readonly sinks?: Json }
  if (typeof process !== 'string' || !Array.isArray(sinks)) return []
  return sinks.flatMap((each: Json) => {
    const { sink, forMs, error } = (each ?? {}) as Partial<Record<keyof OutageNote, Json>>
    if (typeof sink !== 'string' || typeof forMs !== 'number' || typeof error !== 'string') return []
    return [{ sink, since: writtenAt - forMs, error, process }]
  })
}

/** Passwords inside URLs are nobody else's, and an error may be as long as it likes. */
function shortened(message: string): string {
  const plain = message.replace(/([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):[^\s@/]*@/gi, '$1:[redacted]@')
  return plain.length > MAX_MESSAGE ? `${plain.slice(0, MAX_MESSAGE)}…` : plain
}
