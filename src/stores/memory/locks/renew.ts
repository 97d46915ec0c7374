import type { Lease, RenewRequest } from '../../../core/locks/lease.js'
import type { LeaseRecord, MemoryState } from '../schema/state.js'
import { toLease } from './lease-codec.js'

/** Renews an expired lock too, while no other holder took it. */
export function renewLeases(state: MemoryState, requests: readonly RenewRequest[]): (Lease | undefined)[] {
  return requests.map(({ name, holder, token, ttlMs }) => {
    const lease = state.names.get(name)?.holders.get(holder)
    if (lease === undefined || lease.token !== token || lease.released) return undefined
    return toLease(extend(state, lease, state.now + ttlMs))
  })
}

/** A run's key expires with its instance, whose beats extend it. */
export function extend(state: MemoryState, lease: LeaseRecord, expiresAt: number): LeaseRecord {
  if (lease.run !== undefined) return lease
  state.locks.remove(lease)
  lease.expiresAt = expiresAt
  state.locks.push(lease)
  return lease
}
