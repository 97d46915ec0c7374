/** Reads one schedule, or lists schedules in order of id. */

import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { textOrder } from '../../../core/names/text-order.js'
import type { Schedule } from '../../../core/schedules/schedule.js'
import { matchesSchedule } from '../../../core/schedules/schedule-query.js'
import type { Page, ScheduleQuery } from '../../../core/store.js'
import { firstOf } from '../cluster/pages.js'
import { everywhere, shardOf } from '../cluster/shards.js'
import { flag, listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import listSource from './list.lua'
import { toSchedule } from './schedule-codec.js'

export async function getSchedule(server: Server, id: string): Promise<Schedule | undefined> {
  const stored = await server.readText(shardOf(id, server.shards), ['HGET', 'schedules', id])
  return stored === undefined ? undefined : toSchedule(id, stored)
}

const listScript = luaScript({
  name: 'schedules/list',
  source: listSource,
  takes: { from: text, limit: number, unstamped: flag },
  gives: { schedules: listOf(named({ id: text, text: maybe(text) })) },
})

const CHUNK = 500

export async function listSchedules(server: Server, query: ScheduleQuery): Promise<Page<Schedule>> {
  checkPageLimit(query.limit)
  const pages = await everywhere(server, (shard) => listShard(server, shard, query))
  return firstOf(pages, query.limit, ({ id }) => id, textOrder)
}

async function listShard(server: Server, shard: number, query: ScheduleQuery): Promise<Page<Schedule>> {
  const { prefix = '', after, limit, look = Number.POSITIVE_INFINITY } = query
  const unstamped = query.unstamped === true
  const items: Schedule[] = []
  let from = after === undefined || textOrder(after, prefix) < 0 ? `[${prefix}` : `(${after}`
  for (let looked = 0; ; ) {
    const size = looked === 0 ? Math.min(CHUNK, limit + 1) : CHUNK
    const { schedules } = await server.call(listScript, shard, { from, limit: size, unstamped })
    looked += schedules.length
    for (const { id, text: stored } of schedules) {
      if (!id.startsWith(prefix)) return { items }
      const schedule = stored === undefined ? undefined : toSchedule(id, stored)
      if (schedule === undefined || !matchesSchedule(schedule, query)) continue
      if (items.length === limit) return { items, next: items.at(-1)?.id ?? '' }
      items.push(schedule)
    }
    const last = schedules.at(-1)?.id
    if (last === undefined) return { items }
    if (looked >= look) return { items, next: last }
    from = `(${last}`
  }
}
