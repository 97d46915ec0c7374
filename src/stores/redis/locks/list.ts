/** Lists leases: of one name, or all in order of name. */

import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { Lease } from '../../../core/locks/lease.js'
import { textOrder } from '../../../core/names/text-order.js'
import type { Page } from '../../../core/store.js'
import { firstOf } from '../cluster/pages.js'
import { everywhere, shardOf } from '../cluster/shards.js'
import { listOf, luaScript, named, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import inspectSource from './inspect.lua'
import { toLease, toldLease } from './lease-codec.js'

const inspectScript = luaScript({
  name: 'locks/inspect',
  source: inspectSource,
  takes: { names: listOf(text) },
  gives: { leases: listOf(named({ name: text, lease: toldLease })) },
})

async function inspectAll(server: Server, shard: number, names: readonly string[]): Promise<Lease[]> {
  const { leases } = await server.call(inspectScript, shard, { names })
  return leases.map(({ name, lease }) => toLease(shard, name, lease))
}

export function inspectLease(server: Server, name: string): Promise<Lease[]> {
  return inspectAll(server, shardOf(name, server.shards), [name])
}

const CHUNK = 200

interface LeaseQuery {
  readonly prefix?: string
  readonly after?: string
  readonly limit: number
}

/** All leases, in order of name and holder. The index may still have names that have no holder any more. */
export async function listLeases(server: Server, query: LeaseQuery): Promise<Page<Lease>> {
  checkPageLimit(query.limit)
  const pages = await everywhere(server, (shard) => listShard(server, shard, query))
  return firstOf(pages, query.limit, placeOf, textOrder)
}

function placeOf({ name, holder }: Lease): string {
  return `${name}\n${holder}`
}

async function listShard(server: Server, shard: number, query: LeaseQuery): Promise<Page<Lease>> {
  const { prefix = '', after, limit } = query
  const found: Lease[] = []
  const afterName = after?.slice(0, after.indexOf('\n'))
  let from = afterName === undefined || textOrder(afterName, prefix) < 0 ? `[${prefix}` : `[${afterName}`
  for (let more = true; more && found.length <= limit; ) {
    const names = await server.readTexts(shard, ['ZRANGEBYLEX', 'lock-names', from, '+', 'LIMIT', '0', String(CHUNK)])
    const wanted = names.filter((name) => name.startsWith(prefix))
    more = names.length === CHUNK && wanted.length === names.length
    from = `(${names.at(-1) ?? ''}`
    const leases = wanted.length === 0 ? [] : await inspectAll(server, shard, wanted)
    const chunk = leases.filter((lease) => after === undefined || textOrder(placeOf(lease), after) > 0)
    found.push(...chunk.sort((one, other) => textOrder(placeOf(one), placeOf(other))))
  }
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return found.length > limit && last !== undefined ? { items, next: placeOf(last) } : { items }
}
