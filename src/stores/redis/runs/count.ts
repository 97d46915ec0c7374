import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { CountQuery } from '../../../core/store.js'
import { everywhere } from '../cluster/shards.js'
import { luaScript, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './count.lua'

const countScript = luaScript({
  name: 'runs/count',
  source,
  takes: { index: text, prefix: text },
  gives: { count: number },
})

export function countRuns(server: Server, query: CountQuery): Promise<number> {
  return countIn(server, 'runs-open', query)
}

/** Counts the members of an index that begin with a prefix, in all shards. */
export async function countIn(
  server: Server,
  index: 'runs-open' | 'schedule-ids',
  { prefix, limit }: CountQuery,
): Promise<number> {
  checkPageLimit(limit)
  const counts = await everywhere(server, (shard) => server.call(countScript, shard, { index, prefix }))
  return Math.min(
    counts.reduce((sum, { count }) => sum + count, 0),
    limit,
  )
}
