/** Taking locks. `acquire.lua` opens with the protocol. Calls that come at the same time share a script. */
import type { AcquireRequest, AcquireResult } from '../../../core/locks/lease.js'
import { shardOf } from '../cluster/shards.js'
import { CoalescedWrites } from '../connection/coalesced-writes.js'
import { luaScript } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { listOf, maybe, named, number, text } from '../connection/shapes.js'
import source from './acquire.lua'

const acquireScript = luaScript({
  name: 'locks/acquire',
  source,
  writes: true,
  takes: {
    /** The highest of all that ask together. */
    floor: number,
    requests: listOf(
      named({ name: text, holder: text, ttlMs: number, permits: number, instance: maybe(text), waitMs: number }),
    ),
  },
  gives: {
    now: number,
    /** With a token for each that has the lock, otherwise with when it may be free. */
    results: listOf(
      named({
        ...{ token: maybe(number), acquiredAt: maybe(number), expiresAt: maybe(number), instance: maybe(text) },
        busyUntil: maybe(number),
      }),
    ),
  },
})

/** While one script is carried out, the next is put together. */
export const SHARING = { most: 12, atOnce: 4 }

export class Acquisitions {
  readonly #server: Server
  /** By shard. */
  readonly #calls: CoalescedWrites<AcquireRequest, AcquireResult>[] = []

  constructor(server: Server) {
    this.#server = server
  }

  acquire(request: AcquireRequest): Promise<AcquireResult> {
    const shard = shardOf(request.name, this.#server.shards)
    this.#calls[shard] ??= new CoalescedWrites((all) => acquireLeases(this.#server, shard, all), SHARING)
    return this.#calls[shard].call(request)
  }
}

async function acquireLeases(
  server: Server,
  shard: number,
  requests: readonly AcquireRequest[],
): Promise<AcquireResult[]> {
  const { now, results } = await server.call(acquireScript, shard, {
    floor: server.time.floor(Math.max(...requests.map(({ floor }) => floor))),
    requests: requests.map(({ name, holder, ttlMs, permits, instance, waitMs = 0 }) => {
      return { name, holder, ttlMs, permits, waitMs, ...(instance === undefined ? {} : { instance }) }
    }),
  })
  server.time.heard(now)
  return requests.map(({ name, holder }, at): AcquireResult => {
    const { token, acquiredAt = now, expiresAt = now, instance, busyUntil = now } = results[at] ?? {}
    if (token === undefined) return { acquired: false, until: busyUntil, now }
    const lease = { name, holder, token, acquiredAt, expiresAt }
    return { acquired: true, lease: instance === undefined ? lease : { ...lease, instance }, now }
  })
}
