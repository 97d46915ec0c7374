import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { Lease } from '../../../core/locks/lease.js'
import type { Page } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import { liveHolders } from './acquire.js'
import { toLease } from './lease-codec.js'

export function inspectLease(state: MemoryState, name: string): Lease[] {
  const record = state.names.get(name)
  return record === undefined ? [] : liveHolders(record, state.now).map(toLease)
}

/** The cursor is the name and the holder of the last lease on the page. */
export function listLeases(
  state: MemoryState,
  query: { readonly prefix?: string; readonly after?: string; readonly limit: number },
): Page<Lease> {
  const { prefix = '', after, limit } = query
  checkPageLimit(limit)
  const found = [...state.names.values()]
    .filter(({ name, holders }) => holders.size > 0 && name.startsWith(prefix))
    .flatMap((name) => liveHolders(name, state.now))
    .map((lease) => ({ lease, place: `${lease.name.name}\n${lease.holder}` }))
    .filter(({ place }) => after === undefined || place > after)
    .sort((one, other) => (one.place < other.place ? -1 : 1))
  const page = found.slice(0, limit)
  const items = page.map(({ lease }) => toLease(lease))
  return found.length > limit ? { items, next: page.at(-1)?.place ?? '' } : { items }
}
