import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { Lease } from '../../../core/locks/lease.js'
import { afterPrefix } from '../../../core/names/text-order.js'
import type { Page } from '../../../core/store.js'
import { rows } from '../connection/statements.js'
import type { Snapshot } from '../connection/tx.js'
import { liveHolders } from './acquire.js'
import { type LeaseRow, toLease } from './lease-codec.js'
import source from './list.sql'

export function inspectLease(snapshot: Snapshot, name: string): Lease[] {
  return liveHolders(snapshot, name).map(toLease)
}

type Range = { name: string; holder: string; prefix: string; beyond: string; limit: number }
const listHolders = rows<Range, LeaseRow>(source, 'listHolders')

/** The cursor is the name and the holder of the last lease on the page. */
export function listLeases(
  snapshot: Snapshot,
  query: { readonly prefix?: string; readonly after?: string; readonly limit: number },
): Page<Lease> {
  const { prefix = '', after = '', limit } = query
  checkPageLimit(limit)
  const [name = '', holder = ''] = after.split('\n')
  const found = listHolders(snapshot, { name, holder, prefix, beyond: afterPrefix(prefix), limit: limit + 1 })
  const items = found.slice(0, limit).map(toLease)
  const last = items.at(-1)
  return found.length > limit && last !== undefined ? { items, next: `${last.name}\n${last.holder}` } : { items }
}
