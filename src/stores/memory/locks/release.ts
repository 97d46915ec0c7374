import type { ReleaseRequest } from '../../../core/locks/lease.js'
import type { LeaseRecord, MemoryState } from '../schema/state.js'
import { extend } from './renew.js'

/** Removes only the holder's own record and its place in the queue, so that a repeated or late release is harmless. */
export function releaseLease(state: MemoryState, { name: id, holder, minHoldMs = 0 }: ReleaseRequest): boolean {
  const name = state.names.get(id)
  if (name === undefined) return false
  const waited = name.waiters.delete(holder)
  const lease = name.holders.get(holder)
  const held = lease !== undefined && !lease.released && lease.run === undefined
  if (held) {
    const heldUntil = lease.acquiredAt + minHoldMs
    if (heldUntil <= state.now) dropHolder(state, lease)
    else extend(state, lease, heldUntil).released = true
  }
  state.freedNames.add(name)
  return held || waited
}

export function dropHolder(state: MemoryState, lease: LeaseRecord): void {
  lease.name.holders.delete(lease.holder)
  if (lease.name.holders.size === 0) state.heldNames.delete(lease.name.name)
  state.locks.remove(lease)
  if (lease.run !== undefined) lease.run.lease = undefined
  state.freedNames.add(lease.name)
}
