/** Leases: of one name, and all in order of name. */

import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { Lease } from '../../../core/locks/lease.js'
import { textOrder } from '../../../core/names/text-order.js'
import type { Page } from '../../../core/store.js'
import { firstOf } from '../cluster/pages.js'
import { everywhere, shardOf } from '../cluster/shards.js'
import { luaScript } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { listOf, named, number, text } from '../connection/shapes.js'
import inspectSource from './inspect.lua'
import { toLease, toldLease } from './lease-codec.js'
import namesSource from './names.lua'

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

const namesScript = luaScript({
  name: 'locks/names',
  source: namesSource,
  takes: { from: text, limit: number },
  gives: { names: listOf(text) },
})

const CHUNK = 200

interface LeaseQuery {
  readonly prefix?: string
  readonly after?: string
  readonly limit: number
}

/** In order of name and holder. The index may still have names without holders. */
export async function listLeases(server: Server, query: LeaseQuery): Promise<Page<Lease>> {
  checkPageLimit(query.limit)
  const pages = await everywhere(server, (shard) => listShard(server, shard, query))
  return firstOf(pages, query.limit, (one, other) => textOrder(placeOf(one), placeOf(other)), placeOf, textOrder)
}

function placeOf({ name, holder }: Lease): string {
  return `${name}\n${holder}`
}

async function listShard(server: Server, shard: number, query: LeaseQuery): Promise<Page<Lease>> {
  const { prefix = '', after, limit } = query
  const found: { readonly lease: Lease; readonly place: string }[] = []
  const afterName = after?.slice(0, after.indexOf('\n'))
  let from = afterName === undefined || textOrder(afterName, prefix) < 0 ? `[${prefix}` : `[${afterName}`
  for (let more = true; more && found.length <= limit; ) {
    const { names } = await server.call(namesScript, shard, { from, limit: CHUNK })
    const wanted = names.filter((name) => name.startsWith(prefix))
    more = names.length === CHUNK && wanted.length === names.length
    from = `(${names.at(-1) ?? ''}`
    const leases = wanted.length === 0 ? [] : await inspectAll(server, shard, wanted)
    const places = leases.map((lease) => ({ lease, place: placeOf(lease) }))
    const chunk = places.filter(({ place }) => after === undefined || textOrder(place, after) > 0)
    found.push(...chunk.sort((one, other) => textOrder(one.place, other.place)))
  }
  const page = found.slice(0, limit)
  const items = page.map(({ lease }) => lease)
  return found.length > limit ? { items, next: page.at(-1)?.place ?? '' } : { items }
}
