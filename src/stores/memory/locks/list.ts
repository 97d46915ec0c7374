import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { Lease } from '../../../core/locks/lease.js'
import type { Page } from '../../../core/store.js'
import type { LeaseRecord, MemoryState } from '../schema/state.js'
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
  const { prefix = '', after = '', limit } = query
  checkPageLimit(limit)
  const [lastName = ''] = after.split('\n')
  const items: Lease[] = []
  let last = ''
  for (const name of state.heldNames.from(after.startsWith(prefix) ? lastName : prefix)) {
    if (!name.startsWith(prefix)) break
    for (const lease of inOrder(state, name)) {
      const place = `${name}\n${lease.holder}`
      if (name < lastName || (name === lastName && place <= after)) continue
      if (items.length === limit) return { items, next: last }
      items.push(toLease(lease))
      last = place
    }
  }
  return { items }
}

/** The live holders of a name. */
function inOrder(state: MemoryState, name: string): readonly LeaseRecord[] {
  const record = state.names.get(name)
  if (record === undefined) return []
  return liveHolders(record, state.now).sort((one, other) => (one.holder < other.holder ? -1 : 1))
}
