import type { RescueResult } from '../../../core/store.js'
import { everywhere } from '../cluster/shards.js'
import { deliverTickets } from '../cluster/tickets/deliver.js'
import { luaScript, number } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './rescue.lua'

const rescueScript = luaScript({
  name: 'runs/rescue',
  source,
  writes: true,
  takes: { limit: number },
  gives: { rescued: number, lost: number },
})

/** Each shard declares instances dead by the beats that it has received itself. */
export async function rescueRuns(server: Server, limit: number): Promise<RescueResult> {
  let [rescued, lost] = [0, 0]
  for (let shard = 0; shard < server.shards; shard += 1) {
    const result = await server.call(rescueScript, shard, { limit: Math.max(limit - rescued - lost, 0) })
    rescued += result.rescued
    lost += result.lost
  }
  // Sends tickets that a crash left in an outbox, or that a failover lost.
  if (server.shards > 1) await everywhere(server, (shard) => deliverTickets(server, shard))
  return { rescued, lost }
}
