import type { Lease, RenewRequest } from '../../../core/locks/lease.js'
import { inShards, shardOf } from '../cluster/shards.js'
import { listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { toLease, toldLease } from './lease-codec.js'
import source from './renew.lua'

const renewScript = luaScript({
  name: 'locks/renew',
  source,
  writes: true,
  takes: { requests: listOf(named({ name: text, holder: text, token: text, ttlMs: number })) },
  gives: { leases: listOf(maybe(toldLease)) },
})

export function renewLeases(server: Server, requests: readonly RenewRequest[]): Promise<(Lease | undefined)[]> {
  return inShards(
    requests,
    ({ name }) => shardOf(name, server.shards),
    async (shard, own) => {
      const given = own.map(({ name, holder, token, ttlMs }) => ({ name, holder, token: String(token), ttlMs }))
      const { leases } = await server.call(renewScript, shard, { requests: given })
      return own.map(({ name }, at) => {
        const lease = leases[at]
        return lease === undefined ? undefined : toLease(shard, name, lease)
      })
    },
  )
}
