import type { PruneRequest } from '../../../core/store.js'
import { peekEnded } from '../cluster/peek.js'
import { everywhere } from '../cluster/shards.js'
import { luaScript, number } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { pruneRecords } from '../records/records.js'
import source from './prune.lua'

const pruneScript = luaScript({
  name: 'runs/prune',
  source,
  writes: true,
  takes: { maxAgeMs: number, maxRuns: number, leaseAgeMs: number, limit: number },
  gives: { forgotten: number },
})

export async function pruneHistory(server: Server, request: PruneRequest): Promise<number> {
  const forgotten = await pruneShards(server, request)
  return forgotten + (await pruneRecords(server, request.limit - forgotten))
}

async function pruneShards(server: Server, request: PruneRequest): Promise<number> {
  const { maxAgeMs, maxRuns, leaseAgeMs, limit } = request
  const prune = async (shard: number, most: number, share: number) => {
    const given = { maxAgeMs, maxRuns: most, leaseAgeMs, limit: share }
    return (await server.call(pruneScript, shard, given)).forgotten
  }
  if (server.shards === 1) return prune(0, maxRuns, limit)
  const kept = await peekEnded(server, maxRuns, limit)
  const share = Math.ceil(limit / server.shards)
  const counts = await everywhere(server, (shard) => prune(shard, kept[shard] ?? maxRuns, share))
  return counts.reduce((sum, count) => sum + count, 0)
}
