import type { CountQuery } from '../../../core/store.js'
import type { Server } from '../connection/server.js'
import { countIn } from '../runs/count.js'

export function countSchedules(server: Server, query: CountQuery): Promise<number> {
  return countIn(server, 'schedule-ids', query)
}
