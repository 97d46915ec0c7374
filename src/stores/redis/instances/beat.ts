import type { BeatRequest, BeatResult } from '../../../core/instances/instance.js'
import { byShard, everywhere, homeOf } from '../cluster/shards.js'
import { flag, listOf, luaScript, named, number, text } from '../connection/lua-script.js'
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
  gives: { now: number, alive: flag, lost: listOf(text), cancel: listOf(text) },
})

/** The beat goes to every shard. An instance that one of them declared dead is dead. */
export async function beatInstance(server: Server, request: BeatRequest): Promise<BeatResult> {
  server.lease.heard(request.leaseMs)
  const listed = request.attempts.flatMap((attempt): Listed[] => {
    const { run, token } = attempt
    const own = { run, token, shard: homeOf(server, run), number: runPlace(run)?.number ?? run }
    const keyShard = server.tickets.shardOf(attempt)
    return keyShard === undefined ? [own] : [own, { run, token, shard: keyShard, number: ticketOf(run) }]
  })
  const attempts = new Map(byShard(listed, ({ shard }) => shard).map(({ shard, items }) => [shard, items]))
  const beats = await everywhere(server, (shard) => beatShard(server, shard, request, attempts.get(shard) ?? []))
  for (const { now } of beats) server.time.heard(now)
  const alive = beats.every((beat) => beat.alive)
  return {
    alive,
    lost: alive ? [...new Set(beats.flatMap(({ lost }) => lost))] : request.attempts.map(({ run }) => run),
    cancel: alive ? beats.flatMap(({ cancel }) => cancel) : [],
    now: beats[0]?.now ?? 0,
  }
}

/** An attempt as a shard knows it: by its run, or by the ticket that stands for it. */
interface Listed {
  readonly run: string
  readonly token: number
  readonly shard: number
  readonly number: string
}

async function beatShard(
  server: Server,
  shard: number,
  { instance, leaseMs, claimsSettled }: BeatRequest,
  attempts: readonly Listed[],
): Promise<BeatResult> {
  const listed = attempts.map(({ number: run, token }) => ({ run, token: String(token) }))
  const beat = await server.call(beatScript, shard, { instance, leaseMs, claimsSettled, attempts: listed })
  const gone = new Set(beat.lost)
  return {
    ...{ alive: beat.alive, now: beat.now },
    lost: attempts.filter((attempt) => gone.has(attempt.number)).map(({ run }) => run),
    cancel: beat.cancel.map((each) => runId(shard, each)),
  }
}
