/** The sinks that live instances cannot reach. Every process can read their records from the store. */
import { OUTAGE_KIND, reportedOutages } from '../../core/records/outage.js'
import type { Store } from '../../core/store.js'
import { isoText } from '../../time/instant.js'

export interface UnreachableSink {
  readonly sink: string
  readonly since: Date
  /** The error of the newest record. */
  readonly error: string
  /** The instances that cannot reach the sink, as `host:pid`. */
  readonly instances: readonly string[]
}

/** The most records to read. Each instance has one record while it cannot reach a sink. */
const MAX_RECORDS = 1_000

/** In order of name. */
export async function unreachableSinks(store: Store): Promise<readonly UnreachableSink[]> {
  const { items } = await store.records.list({ kind: OUTAGE_KIND, limit: MAX_RECORDS })
  const found = new Map<string, UnreachableSink>()
  const oldestFirst = [...items].sort((one, other) => one.writtenAt - other.writtenAt)
  for (const { sink, since, error, process } of oldestFirst.flatMap(reportedOutages)) {
    const known = found.get(sink)
    found.set(sink, {
      sink,
      since: new Date(Math.min(since, known?.since.getTime() ?? since)),
      error,
      instances: [...(known?.instances ?? []), process],
    })
  }
  return [...found.values()].sort((one, other) => (one.sink < other.sink ? -1 : 1))
}

export const OUTAGE_ADVICE =
  'Its events wait in the store and use up no attempts; one of them is tried every 10 s at the latest, and all go out when it is delivered.'

export function outageText({ sink, since, error }: UnreachableSink): string {
  return `The sink "${sink}" is unreachable since ${isoText(since.getTime())}: ${error}. ${OUTAGE_ADVICE}`
}
