import type { PutResult, ScheduleWrite } from '../../../core/store.js'
import type { Server } from '../connection/server.js'
import { putSchedules } from './put.js'
import { removeSchedules } from './remove.js'

/**
 * No script can write to two shards: all puts are decided first, then each is written, and only then the others are
 * removed.
 */
export async function applySchedules(
  server: Server,
  writes: readonly ScheduleWrite[],
  removals: readonly string[],
): Promise<PutResult[]> {
  const results = await putSchedules(server, writes)
  await removeSchedules(server, removals)
  return results
}
