import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import type { Tx } from '../connection/tx.js'
import type { Steps } from '../connection/write-queue.js'
import { putSchedules } from './put.js'
import { removeSchedules } from './remove.js'

export function* applySchedules(
  tx: Tx,
  writes: readonly ScheduleWrite[],
  removals: readonly string[],
): Steps<PutResult[]> {
  const results = yield* putSchedules(tx, writes)
  yield* removeSchedules(tx, removals)
  return results
}
