/** Acquires locks. `acquire.lua` begins with the protocol. */
import type { AcquireRequest, AcquireResult } from '../../../core/locks/lease.js'
import { coalescedInShards, shardOf } from '../cluster/shards.js'
import { listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './acquire.lua'
import { toLease, toldLease } from './lease-codec.js'

const acquireScript = luaScript({
  name: 'locks/acquire',
  source,
  writes: true,
  takes: {
    /** The highest floor of all requests in the call. */
    floor: number,
    requests: listOf(
      named({ name: text, holder: text, ttlMs: number, permits: number, instance: maybe(text), waitMs: number }),
    ),
  },
  gives: {
    now: number,
    /** For each request its lease, or when the lock may become free. */
    results: listOf(named({ lease: maybe(toldLease), busyUntil: maybe(number) })),
  },
})

/** Several scripts are in flight, so that the next one is composed while the server executes one. */
export const SHARING = { maxItems: 12, atOnce: 4 }

export function acquisitions(server: Server): (request: AcquireRequest) => Promise<AcquireResult> {
  return coalescedInShards(
    ({ name }) => shardOf(name, server.shards),
    (shard, requests) => acquireLeases(server, shard, requests),
    SHARING,
  )
}

async function acquireLeases(
  server: Server,
  shard: number,
  requests: readonly AcquireRequest[],
): Promise<AcquireResult[]> {
  const { now, results } = await server.call(acquireScript, shard, {
    floor: server.time.floor(Math.max(...requests.map(({ floor }) => floor))),
    requests: requests.map(({ name, holder, ttlMs, permits, instance, waitMs = 0 }) => {
      return { name, holder, ttlMs, permits, instance, waitMs }
    }),
  })
  server.time.heard(now)
  return requests.map(({ name }, at): AcquireResult => {
    const { lease, busyUntil: until = now } = results[at] ?? {}
    return lease === undefined
      ? { acquired: false, until, now }
      : { acquired: true, lease: toLease(shard, name, lease), now }
  })
}
