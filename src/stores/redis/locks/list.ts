/** Who holds what: of one name, and of all in order. */
import type { Lease } from '../../../core/lease.js'
import { checkPageLimit } from '../../../core/page-limit.js'
import type { Page } from '../../../core/store.js'
import { textOrder } from '../../../core/text-order.js'
import { firstOf } from '../cluster/pages.js'
import { everywhere, shardOf } from '../cluster/shards.js'
import { runScript, script } from '../connection/script.js'
import { type Server, textsOf } from '../connection/server.js'
import { fromWord, word } from '../schema/words.js'
import { TOLD, toLease } from './lease-codec.js'

const INSPECT = runScript(`${TOLD}
local found = {}
for at = 1, #ARGV do
  local m = name(ARGV[at])
  for _, h in ipairs(m.holders) do if endOf(h) > now then found[#found + 1] = ARGV[at] .. ' ' .. told(m, h) end end
end
return found`)

async function inspectAll(server: Server, shard: number, names: readonly string[]): Promise<Lease[]> {
  const lines = textsOf(await server.read(INSPECT, shard, names.map(word)))
  return lines.map((line) => {
    const space = line.indexOf(' ')
    return toLease(shard, fromWord(line.slice(0, space)) ?? '', line.slice(space + 1))
  })
}

export function inspectLease(server: Server, name: string): Promise<Lease[]> {
  return inspectAll(server, shardOf(name, server.shards), [name])
}

const NAMES_FROM = script(`return redis.call('ZRANGEBYLEX', KEYS[1] .. 'names', ARGV[1], '+', 'LIMIT', 0, ARGV[2])`)
const CHUNK = 200

interface LeaseQuery {
  readonly prefix?: string
  readonly after?: string
  readonly limit: number
}

/** In order of name and holder. The index may still know names that nobody holds any more. */
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
    const names = textsOf(await server.read(NAMES_FROM, shard, [from, CHUNK]))
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
