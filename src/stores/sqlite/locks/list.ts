import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { Lease } from '../../../core/locks/lease.js'
import { afterPrefix } from '../../../core/names/text-order.js'
import type { Page } from '../../../core/store.js'
import { statement } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import { liveHolders } from './acquire.js'
import { type LeaseRow, toLease } from './lease-codec.js'
import source from './list.sql'

export function inspectLease(snapshot: Snapshot, name: string): Lease[] {
  return liveHolders(snapshot, name).map(toLease)
}

type Range = { name: string; holder: string; prefix: string; beyond: string; now: number; limit: number }
const listHolders = statement<Range, LeaseRow>(source, 'listHolders')

/** The cursor is the name and the holder of the last lease on the page. */
export function listLeases(
  { db, now }: Snapshot,
  query: { readonly prefix?: string; readonly after?: string; readonly limit: number },
): Page<Lease> {
  const { prefix = '', after = '', limit } = query
  checkPageLimit(limit)
  const [name = '', holder = ''] = after.split('\n')
  const rows = db.all(listHolders, { name, holder, prefix, beyond: afterPrefix(prefix), now, limit: limit + 1 })
  const items = rows.slice(0, limit).map(toLease)
  const last = items.at(-1)
  return rows.length > limit && last !== undefined ? { items, next: `${last.name}\n${last.holder}` } : { items }
}
