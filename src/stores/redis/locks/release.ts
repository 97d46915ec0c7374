/** Releases locks. `pass-on.lua` hands them to the next waiter. */
import type { ReleaseRequest } from '../../../core/locks/lease.js'
import { coalescedInShards, shardOf } from '../cluster/shards.js'
import { flag, listOf, luaScript, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { SHARING } from './acquire.js'
import source from './release.lua'

const releaseScript = luaScript({
  name: 'locks/release',
  source,
  writes: true,
  takes: { requests: listOf(named({ name: text, holder: text, minHoldMs: number })) },
  gives: { results: listOf(flag) },
})

export function releases(server: Server): (request: ReleaseRequest) => Promise<boolean> {
  return coalescedInShards(
    ({ name }) => shardOf(name, server.shards),
    async (shard, requests) => {
      const given = requests.map(({ name, holder, minHoldMs = 0 }) => ({ name, holder, minHoldMs }))
      return (await server.call(releaseScript, shard, { requests: given })).results
    },
    SHARING,
  )
}
