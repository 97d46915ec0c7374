/** Reads the current holders of locks and keys. */

import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { Lease } from '../../../core/locks/lease.js'
import { afterPrefix } from '../../../core/names/text-order.js'
import type { Page } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { leaseCodec } from './lease-codec.js'

const NOW = '(select belfry.now_us() / 1000)'
const INSPECT = `select ${leaseCodec.select('l')} from belfry.lease_times l
  where l.name = $1 and l.counts_until > ${NOW} order by l.token`

export async function inspectLease(db: Database, name: string): Promise<Lease[]> {
  return (await db.read(INSPECT, [name])).map(leaseCodec.read)
}

const LIST = `select ${leaseCodec.select('l')} from belfry.lease_times l where (l.name, l.holder) > ($1, $2)
  and l.name >= $3 and l.name < $4 and l.counts_until > ${NOW} order by l.name, l.holder limit $5`

/** `after` is the name and the holder of the previous page's last lease, with a line break between them. */
export async function listLeases(
  db: Database,
  query: { readonly prefix?: string; readonly after?: string; readonly limit: number },
): Promise<Page<Lease>> {
  const { prefix = '', after = '', limit } = query
  checkPageLimit(limit)
  const [name = '', holder = ''] = after.split('\n')
  const rows = await db.read(LIST, [name, holder, prefix, afterPrefix(prefix), limit + 1])
  const items = rows.slice(0, limit).map(leaseCodec.read)
  const last = items.at(-1)
  return rows.length > limit && last !== undefined ? { items, next: `${last.name}\n${last.holder}` } : { items }
}
