/** Looking at schedules: one, many in order of their ids, and what was skipped of one. */
import { checkPageLimit } from '../../../core/page-limit.js'
import type { SkipRange } from '../../../core/plan.js'
import type { SkipReason } from '../../../core/policies.js'
import { type Schedule, scheduleState } from '../../../core/schedule.js'
import type { Page, ScheduleQuery } from '../../../core/store.js'
import { textOrder } from '../../../core/text-order.js'
import { firstOf } from '../cluster/pages.js'
import { everywhere, shardOf } from '../cluster/shards.js'
import { script } from '../connection/script.js'
import { listOf, type Server, textsOf } from '../connection/server.js'
import { word } from '../schema/words.js'
import { toSchedule } from './schedule-codec.js'

const GET = script(`return redis.call('HGET', KEYS[1] .. 's', ARGV[1])`)

export async function getSchedule(server: Server, id: string): Promise<Schedule | undefined> {
  const text = await server.read(GET, shardOf(id, server.shards), [id])
  return text === null ? undefined : toSchedule(id, String(text))
}

const LIST = script(`
local ids = redis.call('ZRANGEBYLEX', KEYS[1] .. ARGV[1], ARGV[2], '+', 'LIMIT', 0, ARGV[3])
if #ids == 0 then return { {}, {} } end
local texts = redis.call('HMGET', KEYS[1] .. 's', unpack(ids))
for at = 1, #ids do texts[at] = texts[at] or '' end
return { ids, texts }`)

const CHUNK = 500

export async function listSchedules(server: Server, query: ScheduleQuery): Promise<Page<Schedule>> {
  checkPageLimit(query.limit)
  const pages = await everywhere(server, (shard) => listShard(server, shard, query))
  return firstOf(
    pages,
    query.limit,
    (one, other) => textOrder(one.id, other.id),
    ({ id }) => id,
    textOrder,
  )
}

async function listShard(server: Server, shard: number, query: ScheduleQuery): Promise<Page<Schedule>> {
  const { prefix = '', after, limit, look = Number.POSITIVE_INFINITY } = query
  const index = query.unstamped ? 'unstamped' : 'ids'
  const items: Schedule[] = []
  let from = after === undefined || textOrder(after, prefix) < 0 ? `[${prefix}` : `(${after}`
  for (let looked = 0; ; ) {
    const size = looked === 0 ? Math.min(CHUNK, limit + 1) : CHUNK
    const [ids, texts] = listOf(await server.read(LIST, shard, [index, from, size])).map(textsOf)
    looked += ids?.length ?? 0
    for (const [at, id] of (ids ?? []).entries()) {
      if (!id.startsWith(prefix)) return { items }
      const text = texts?.[at] ?? ''
      const schedule = text === '' ? undefined : toSchedule(id, text)
      if (schedule === undefined || !matches(schedule, query)) continue
      if (items.length === limit) return { items, next: items.at(-1)?.id ?? '' }
      items.push(schedule)
    }
    const last = ids?.at(-1)
    if (last === undefined) return { items }
    if (looked >= look) return { items, next: last }
    from = `(${last}`
  }
}

function matches(schedule: Schedule, { state, job, sink, app }: ScheduleQuery): boolean {
  const { target, app: owner } = schedule.definition
  return (
    (state === undefined || state === scheduleState(schedule)) &&
    (job === undefined || ('job' in target && target.job === job)) &&
    (sink === undefined || ('sink' in target && target.sink === sink)) &&
    (app === undefined || app === owner)
  )
}

const SKIPS = script(
  `return redis.call('ZRANGEBYSCORE', KEYS[1] .. 'sk:' .. ARGV[1], ARGV[2], '+inf', 'LIMIT', 0, ARGV[3])`,
)

export async function skippedRanges(
  server: Server,
  schedule: string,
  from: number,
  to: number,
  limit: number,
): Promise<SkipRange[]> {
  const members = textsOf(await server.read(SKIPS, shardOf(schedule, server.shards), [word(schedule), from, limit]))
  const ranges = [...members].sort().map((member) => {
    const [, first, last, count, reason] = member.split(' ')
    return { from: Number(first), to: Number(last), count: Number(count), reason: reason as SkipReason }
  })
  return ranges.filter((range) => range.from <= to).sort((one, other) => one.from - other.from)
}
