/** Captured output of a run. It is kept for as long as history is by default, and the latest attempt overwrites it. */

import type { Json } from '../../core/checks/json.js'
import { failure } from '../../core/errors.js'
import type { RecordStore } from '../../core/store.js'

export interface RunLog {
  readonly text: string
  /** How many characters were cut from its middle. */
  readonly omitted: number
  readonly attempt: number
}

const KIND = 'run-log'
const KEPT_MS = 7 * 24 * 3_600_000
export const MAX_LOG = 64 * 1_024

export async function writeRunLog(records: RecordStore, run: string, log: RunLog): Promise<void> {
  if (log.text.length > MAX_LOG) {
    throw failure('OPTION_INVALID', `the log of run ${run} has ${log.text.length} characters: at most ${MAX_LOG}`)
  }
  await records.put({ kind: KIND, id: run, body: { ...log }, ttlMs: KEPT_MS })
}

export async function readRunLog(records: RecordStore, run: string): Promise<RunLog | undefined> {
  const record = await records.get(KIND, run)
  return record === undefined ? undefined : logOf(record.body)
}

function logOf(body: Json): RunLog | undefined {
  const { text, omitted, attempt } = body as Partial<Record<keyof RunLog, Json>>
  if (typeof text !== 'string' || typeof omitted !== 'number' || typeof attempt !== 'number') return undefined
  return { text, omitted, attempt }
}
