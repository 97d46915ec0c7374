/**
 * Making runs. Calls for single runs that come at the same time share a script, if their runs belong into the same shard:
 * no caller hears of what goes wrong with another shard. They are made in the order in which they came.
 */
import { failure } from '../../../core/errors.js'
import type { NewRun } from '../../../core/runs/run.js'
import { targetName } from '../../../core/runs/stored-text.js'
import type { EnqueueResult } from '../../../core/store.js'
import { inShards, keyElsewhere, shardOf } from '../cluster/shards.js'
import { refusedElsewhere, winnerElsewhere } from '../cluster/tickets/tickets.js'
import { CoalescedWrites } from '../connection/coalesced-writes.js'
import { luaScript } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { flag, listOf, maybe, named, number, oneOf, type Shape, text } from '../connection/shapes.js'
import source from './enqueue.lua'
import { type MadeRun, madeRun, runBody, runId } from './run-codec.js'

const enqueueScript = luaScript({
  name: 'runs/enqueue',
  source,
  writes: true,
  takes: {
    startFrom: number,
    runs: listOf(
      named({
        run: { read: (run) => run as MadeRun, names: [] } as Shape<MadeRun>,
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

const SHARING = { most: 50, atOnce: 2 }

export class Enqueues {
  readonly #server: Server
  /** By shard. */
  readonly #calls: CoalescedWrites<NewRun, EnqueueResult>[] = []

  constructor(server: Server) {
    this.#server = server
  }

  async enqueue(runs: readonly NewRun[], tx: unknown): Promise<readonly EnqueueResult[]> {
    if (tx !== undefined) {
      throw failure('UNSUPPORTED', 'the Redis store has no transactions to enqueue in: enqueue without `tx`')
    }
    const [only] = runs
    const server = this.#server
    if (only === undefined || runs.length > 1) {
      return inShards(
        runs,
        (run) => homeFor(server, run),
        (shard, own) => enqueueIn(server, shard, own),
      )
    }
    const shard = homeFor(server, only)
    this.#calls[shard] ??= new CoalescedWrites((all) => enqueueIn(server, shard, all), SHARING)
    return [await this.#calls[shard].call(only)]
  }
}

/** Where a run must be to meet those that it has to do with. A run without any may be anywhere. */
function homeFor(server: Server, { schedule, dedupe, target, key }: NewRun): number {
  const { shards } = server
  if (schedule !== undefined) return shardOf(schedule, shards)
  if (dedupe !== undefined) return shardOf(`${targetName(target)} ${dedupe}`, shards)
  if (key !== undefined && key !== 'unstamped') return shardOf(key.name, shards)
  return server.anyShard()
}

async function enqueueIn(server: Server, shard: number, runs: readonly NewRun[]): Promise<EnqueueResult[]> {
  const winners = await Promise.all(runs.map((run) => winnerElsewhere(server, shard, run)))
  const accepted = runs.filter((_, at) => winners[at] === undefined)
  const made = await make(server, shard, accepted)
  const answers = await refusedElsewhere(server, shard, accepted, made)
  const results = answers.values()
  return winners.map((winner): EnqueueResult => {
    if (winner !== undefined) return { outcome: 'busy', run: winner }
    return results.next().value ?? { outcome: 'busy', run: '' }
  })
}

async function make(server: Server, shard: number, runs: readonly NewRun[]): Promise<EnqueueResult[]> {
  if (runs.length === 0) return []
  const news = runs.map((run) => {
    const { readyAt, delayMs = 0, tick, origin, checkKey = false, overlap = 'allow', key } = run
    return {
      ...{ run: madeRun(run, keyElsewhere(server, shard, key)), body: runBody(run), delayMs, checkKey, overlap },
      ...(readyAt === undefined ? {} : { readyAt }),
      tickIsNow: tick === undefined && origin === 'trigger',
    }
  })
  const { results } = await server.call(enqueueScript, shard, { startFrom: server.numbersFrom(), runs: news })
  return results.map(({ outcome, run }) => ({ outcome, run: runId(shard, run) }))
}
