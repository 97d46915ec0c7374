/** Giving locks back. `pass-on.lua` hands them to the next. Calls that come at the same time share a script. */
import type { ReleaseRequest } from '../../../core/locks/lease.js'
import { shardOf } from '../cluster/shards.js'
import { CoalescedWrites } from '../connection/coalesced-writes.js'
import { luaScript } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { flag, listOf, named, number, text } from '../connection/shapes.js'
import { SHARING } from './acquire.js'
import source from './release.lua'

const releaseScript = luaScript({
  name: 'locks/release',
  source,
  writes: true,
  takes: { requests: listOf(named({ name: text, holder: text, minHoldMs: number })) },
  gives: { results: listOf(flag) },
})

export class Releases {
  readonly #server: Server
  /** By shard. */
  readonly #calls: CoalescedWrites<ReleaseRequest, boolean>[] = []

  constructor(server: Server) {
    this.#server = server
  }

  release(request: ReleaseRequest): Promise<boolean> {
    const shard = shardOf(request.name, this.#server.shards)
    this.#calls[shard] ??= new CoalescedWrites((all) => releaseLeases(this.#server, shard, all), SHARING)
    return this.#calls[shard].call(request)
  }
}

async function releaseLeases(
  server: Server,
  shard: number,
  requests: readonly ReleaseRequest[],
): Promise<readonly boolean[]> {
  const given = requests.map(({ name, holder, minHoldMs = 0 }) => ({ name, holder, minHoldMs }))
  return (await server.call(releaseScript, shard, { requests: given })).results
}
