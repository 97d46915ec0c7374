import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { CountQuery } from '../../../core/store.js'
import { everywhere } from '../cluster/shards.js'
import { luaScript, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './count.lua'

const script = luaScript({
  name: 'runs/count',
  source,
  takes: { prefix: text },
  gives: { count: number },
})

export async function countRuns(server: Server, { prefix, limit }: CountQuery): Promise<number> {
  checkPageLimit(limit)
  const counts = await everywhere(server, (shard) => server.call(script, shard, { prefix }))
  return Math.min(
    counts.reduce((sum, { count }) => sum + count, 0),
    limit,
  )
}
