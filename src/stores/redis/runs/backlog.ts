import { backlogOf } from '../../../core/runs/backlog.js'
import { type Backlog, MAX_BACKLOG_QUEUES } from '../../../core/store.js'
import { everywhere } from '../cluster/shards.js'
import { listOf, luaScript, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './backlog.lua'

const backlogScript = luaScript({
  name: 'runs/backlog',
  source,
  takes: { most: number },
  gives: { now: number, queues: listOf(named({ target: text, due: number, oldestReadyAt: number })) },
})

export async function readyBacklog(server: Server): Promise<Backlog> {
  const shards = await everywhere(server, (shard) => server.call(backlogScript, shard, { most: MAX_BACKLOG_QUEUES }))
  const queues = shards.flatMap((shard) => shard.queues.map((queue) => ({ ...queue, more: false })))
  return backlogOf(Math.max(...shards.map(({ now }) => now)), queues)
}
