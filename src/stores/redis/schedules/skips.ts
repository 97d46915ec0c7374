import type { SkipReason } from '../../../core/policies.js'
import type { SkipRange } from '../../../core/schedules/plan.js'
import { shardOf } from '../cluster/shards.js'
import { luaScript } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { listOf, number, text } from '../connection/shapes.js'
import source from './skips.lua'

const skipsScript = luaScript({
  name: 'schedules/skips',
  source,
  takes: { schedule: text, from: number, limit: number },
  gives: { ranges: listOf(text) },
})

/** A range is a text: `<number> <from> <to> <count> <reason>`. */
export async function skippedRanges(
  server: Server,
  schedule: string,
  from: number,
  to: number,
  limit: number,
): Promise<SkipRange[]> {
  const { ranges } = await server.call(skipsScript, shardOf(schedule, server.shards), { schedule, from, limit })
  return [...ranges]
    .sort()
    .map((range) => {
      const [, first, last, count, reason] = range.split(' ')
      return { from: Number(first), to: Number(last), count: Number(count), reason: reason as SkipReason }
    })
    .filter((range) => range.from <= to)
    .sort((one, other) => one.from - other.from)
}
