import type { BeatRequest, BeatResult } from '../../../core/instances/instance.js'
import { everywhere, homeOf } from '../cluster/shards.js'
import { flag, listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { runId, runPlace, ticketOf } from '../runs/run-codec.js'
import source from './beat.lua'

const beatScript = luaScript({
  name: 'instances/beat',
  source,
  writes: true,
  takes: {
    instance: text,
    leaseMs: number,
    claimsSettled: number,
    attempts: listOf(named({ run: text, token: text })),
  },
  gives: { now: number, alive: flag, lost: listOf(text), cancel: listOf(text), lastBeatAt: maybe(number) },
})

/** Sends the beat to every shard. An instance that one shard has declared dead is dead. */
export async function beatInstance(server: Server, request: BeatRequest): Promise<BeatResult> {
  const { instance, leaseMs, claimsSettled } = request
  // The run's shard knows an attempt by the number of its run, the key's shard by the number of its ticket.
  const listed = request.attempts.flatMap((attempt) => {
    const { run, token } = attempt
    const own = { run, token, shard: homeOf(server, run), number: runPlace(run)?.number ?? run }
    const keyShard = server.tickets.shardOf(attempt)
    return keyShard === undefined ? [own] : [own, { run, token, shard: keyShard, number: ticketOf(run) }]
  })
  const beats = await everywhere(server, async (shard) => {
    const own = listed.filter((each) => each.shard === shard)
    const attempts = own.map(({ number: run, token }) => ({ run, token: String(token) }))
    const beat = await server.call(beatScript, shard, { instance, leaseMs, claimsSettled, attempts })
    server.time.heard(beat.now)
    const lost = new Set(beat.lost)
    const lostRuns = own.filter((attempt) => lost.has(attempt.number)).map(({ run }) => run)
    return { ...beat, lost: lostRuns, cancel: beat.cancel.map((each) => runId(shard, each)) }
  })
  const alive = beats.every((beat) => beat.alive)
  const [{ now = 0, lastBeatAt = now } = {}] = beats
  return {
    alive,
    lost: alive ? [...new Set(beats.flatMap(({ lost }) => lost))] : request.attempts.map(({ run }) => run),
    cancel: alive ? beats.flatMap(({ cancel }) => cancel) : [],
    ...{ lastBeatAt, now },
  }
}
