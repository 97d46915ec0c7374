/** Reads one run, or lists runs, newest first. */

import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { isFinished, type Run } from '../../../core/runs/run.js'
import { matchesRun } from '../../../core/runs/run-query.js'
import type { Page, RunQuery } from '../../../core/store.js'
import { firstOf } from '../cluster/pages.js'
import { everywhere, shardOf } from '../cluster/shards.js'
import { flag, listOf, luaScript, maybe, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import listSource from './list.lua'
import { type RunPlace, runPlace, toldRun, toRun } from './run-codec.js'

export async function getRun(server: Server, id: string): Promise<Run | undefined> {
  const place = placeIn(server, id)
  const stored = place && (await server.readText(place.shard, ['HGET', 'runs', place.number]))
  return stored === undefined ? undefined : toRun(id, stored)
}

/** The shard and number of a run, or undefined if the store cannot have issued the id. */
export function placeIn(server: Server, id: string): RunPlace | undefined {
  const place = runPlace(id)
  return place === undefined || place.shard >= server.shards ? undefined : place
}

const listScript = luaScript({
  name: 'runs/list',
  source: listSource,
  takes: { before: maybe(text), limit: number, schedule: maybe(text), unstamped: flag, running: flag },
  gives: { runs: listOf(text), next: maybe(text), open: number },
})

const CHUNK = 200

export async function listRuns(server: Server, query: RunQuery): Promise<Page<Run>> {
  checkPageLimit(query.limit)
  const { schedule, limit } = query
  if (schedule !== undefined) return listShard(server, shardOf(schedule, server.shards), query)
  const pages = await everywhere(server, (shard) => listShard(server, shard, query))
  return firstOf(pages, limit, ({ id }) => id, newestFirst)
}

function newestFirst(one: string, other: string): number {
  const [here, there] = [runPlace(one), runPlace(other)]
  if (here === undefined || there === undefined || here.number === there.number) {
    return (there?.shard ?? 0) - (here?.shard ?? 0)
  }
  return here.number < there.number ? 1 : -1
}

async function listShard(server: Server, shard: number, query: RunQuery): Promise<Page<Run>> {
  const { schedule, states, waitsFor, look, limit } = query
  const items: Run[] = []
  const start = firstBefore(shard, query.after)
  let [before, more] = [start, true]
  // Unfinished runs are mostly among the newest. Once the listing has passed all of them, the rest of the history need
  // not be read.
  let unseen = asksForOpen(query) && start === undefined ? undefined : Number.POSITIVE_INFINITY
  for (let looked = 0; more && (unseen ?? 1) > 0; looked += CHUNK) {
    if (look !== undefined && looked >= look) return { items, next: `${before}-${shard}` }
    const chunk = await server.call(listScript, shard, {
      ...{ before, schedule, limit: CHUNK, unstamped: waitsFor === 'stamp' && schedule === undefined },
      running: states?.every((state) => state === 'running') ?? false,
    })
    unseen ??= chunk.open
    for (const run of chunk.runs.map((told) => toldRun(shard, told))) {
      if (!isFinished(run)) unseen -= 1
      if (!matchesRun(run, run.schedule, query)) continue
      if (items.length === limit) return { items, next: items.at(-1)?.id ?? '' }
      items.push(run)
    }
    before = chunk.next
    more = before !== undefined
  }
  return { items }
}

function asksForOpen({ states, waitsFor }: RunQuery): boolean {
  return waitsFor !== undefined || (states?.every((state) => !isFinished({ state })) ?? false)
}

/**
 * The number before which the list of a shard begins. Runs of different shards may have the same number: those are
 * ordered by shard.
 */
function firstBefore(shard: number, after: string | undefined): string | undefined {
  const place = after === undefined ? undefined : runPlace(after)
  if (place === undefined) return undefined
  return shard < place.shard ? String(Number(place.number) + 1).padStart(16, '0') : place.number
}
