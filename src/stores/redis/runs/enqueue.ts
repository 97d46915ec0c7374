/**
 * Enqueues runs. Concurrent calls for single runs share a script, in the order of the calls. A run is made in the shard
 * of the runs that may refuse it or make it wait: those of its schedule, dedupe key or exclusive key.
 */
import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/runs/run.js'
import { targetName } from '../../../core/runs/stored-text.js'
import type { EnqueueResult } from '../../../core/store.js'
import { coalescedInShards, inShards, keyElsewhere, shardOf } from '../cluster/shards.js'
import { busyElsewhere, refusedElsewhere } from '../cluster/tickets/tickets.js'
import { flag, listOf, luaScript, maybe, named, number, oneOf, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './enqueue.lua'
import { madeRun, madeRunShape, runBody, runId } from './run-codec.js'

const enqueueScript = luaScript({
  name: 'runs/enqueue',
  source,
  writes: true,
  takes: {
    startFrom: number,
    runs: listOf(
      named({
        run: madeRunShape,
        body: text,
        readyAt: maybe(number),
        delayMs: number,
        tickIsNow: flag,
        checkKey: flag,
        overlap: text,
      }),
    ),
  },
  gives: { results: listOf(named({ outcome: oneOf('enqueued', 'duplicate', 'busy'), run: text })) },
})

const SHARING = { maxItems: 50, atOnce: 2 }

export function enqueues(server: Server) {
  const home = (run: NewRun) => homeFor(server, run)
  const work = (shard: number, own: readonly NewRun[]) => enqueueIn(server, shard, own)
  const single = coalescedInShards(home, work, SHARING)
  return async (runs: readonly NewRun[], tx: unknown): Promise<readonly EnqueueResult[]> => {
    if (tx !== undefined) {
      throw failure('UNSUPPORTED', 'the Redis store has no transactions to enqueue in: enqueue without `tx`')
    }
    const [only] = runs
    return only !== undefined && runs.length === 1 ? [await single(only)] : inShards(runs, home, work)
  }
}

/** The shard in which a run is made. A run that no other can refuse or make wait may be in any shard. */
function homeFor(server: Server, { schedule, dedupe, target, key }: NewRun): number {
  const { shards } = server
  if (schedule !== undefined) return shardOf(schedule, shards)
  if (dedupe !== undefined) return shardOf(`${targetName(target)} ${dedupe}`, shards)
  if (key !== undefined && key !== 'unstamped') return shardOf(key.name, shards)
  return server.anyShard()
}

async function enqueueIn(server: Server, shard: number, runs: readonly NewRun[]): Promise<EnqueueResult[]> {
  const refused = await Promise.all(runs.map((run) => busyElsewhere(server, shard, run)))
  const accepted = runs.filter((_, at) => refused[at] === undefined)
  const made = (await make(server, shard, accepted)).values()
  const results = runs.map((_, at) => refused[at] ?? (made.next().value as EnqueueResult))
  return Promise.all(results.map((result, at) => refusedElsewhere(server, shard, runs[at], result)))
}

async function make(server: Server, shard: number, runs: readonly NewRun[]): Promise<EnqueueResult[]> {
  if (runs.length === 0) return []
  const news = runs.map((run) => {
    const { readyAt, delayMs = 0, tick, origin, checkKey = false, overlap = 'allow', key } = run
    return {
      ...{
        run: madeRun(run, keyElsewhere(server, shard, key)),
        body: runBody(run),
        readyAt,
        delayMs,
        checkKey,
        overlap,
      },
      tickIsNow: tick === undefined && origin === 'trigger',
    }
  })
  const { results } = await server.call(enqueueScript, shard, { startFrom: server.numbersFrom(), runs: news })
  return results.map(({ outcome, run }) => ({ outcome, run: runId(shard, run) }))
}
