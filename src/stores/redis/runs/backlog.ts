import { backlogOf, type QueueBacklog } from '../../../core/backlog.js'
import { type Backlog, MAX_BACKLOG_QUEUES } from '../../../core/store.js'
import { everywhere } from '../cluster/shards.js'
import { script } from '../connection/script.js'
import { listOf, type Reply, type Server } from '../connection/server.js'
import { fromWord } from '../schema/words.js'

/** Redis counts a stretch of a sorted set without going through it: all that is due is counted. */
const BACKLOG = script(`
local found = {}
for _, target in ipairs(redis.call('ZRANGE', KEYS[1] .. 'targets', 0, ${MAX_BACKLOG_QUEUES - 1})) do
  for _, prio in ipairs(redis.call('ZRANGE', KEYS[1] .. 'p:' .. target, 0, ${MAX_BACKLOG_QUEUES - 1})) do
    if #found >= ${MAX_BACKLOG_QUEUES} then break end
    local key = KEYS[1] .. 'q:' .. prio .. ':' .. target
    local due = redis.call('ZCOUNT', key, '-inf', now)
    if due > 0 then found[#found + 1] = { target, due, redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] } end
  end
end
return { int(now), found }`)

export async function readyBacklog(server: Server): Promise<Backlog> {
  const replies = (await everywhere(server, (shard) => server.read(BACKLOG, shard))).map(listOf)
  const queues = replies.flatMap((reply) => listOf(reply[1]).map(queueBacklog))
  return backlogOf(Math.max(...replies.map((reply) => Number(reply[0]))), queues)
}

function queueBacklog(reply: Reply): QueueBacklog {
  const [target, due, oldest] = listOf(reply)
  return { target: fromWord(String(target)) ?? '', due: Number(due), more: false, oldestReadyAt: Number(oldest) }
}
