/**
 * Locks. One rule decides everything: a lease belongs to its holder until it has expired AND another holder has taken
 * it.
 *
 * - Two concurrent requests: the first gets the permit, the second finds the lock busy. Its `until` says when to ask
 *   again, and with `waitMs` it gets a position in the waiter queue.
 * - A holder that stalls past its expiry and continues: if no other holder took the lease, it renews. Otherwise its
 *   record is gone, and renew, release and (for a run) settle are refused.
 * - A holder that dies: the next request after the expiry takes the permit, with a higher token.
 * - A waiter that dies: its position expires `waitMs` after its last request, and with it a lease that was handed to it
 *   in between.
 * - A repeated or late release: it only ever removes the holder's own record.
 */
import {
  type AcquireRequest,
  type AcquireResult,
  isFreshPlace,
  type Lease,
  type ReleaseRequest,
  type RenewRequest,
} from '../../core/lease.js'
import { checkPageLimit } from '../../core/page-limit.js'
import type { Page } from '../../core/store.js'
import { dropLease, expiryOf, grantLock, handOn, isBusy, liveHolders, serveWaiters, toLease } from './names.js'
import { takeOver } from './run-endings.js'
import { type LeaseRecord, type MemoryState, type NameRecord, nameOf } from './state.js'

export function acquireLease(state: MemoryState, request: AcquireRequest): AcquireResult {
  const now = state.clock.now()
  const name = nameOf(state, request.name)
  const lease = takePermit(state, name, request, now)
  if (lease === undefined) keepPlace(state, name, request, now)
  else name.waiters.delete(request.holder)
  const result = lease === undefined ? busy(name, now) : { acquired: true as const, lease: toLease(lease), now }
  state.touchedNames.add(name)
  handOn(state, now)
  return result
}

function takePermit(
  state: MemoryState,
  name: NameRecord,
  request: AcquireRequest,
  now: number,
): LeaseRecord | undefined {
  const held = extendOwn(state, name, request, now)
  if (held !== undefined) return held
  serveWaiters(state, name, now)
  const handed = extendOwn(state, name, request, now)
  if (handed !== undefined) return handed
  if (isBusy(name, request.permits, now)) return undefined
  const released = name.holders.get(request.holder)
  if (released !== undefined) dropLease(state, released)
  const { holder, ttlMs, permits, instance, floor } = request
  return grantLock(state, name, { holder, ttlMs, permits, instance, floor }, now)
}

function extendOwn(
  state: MemoryState,
  { holders }: NameRecord,
  { holder, ttlMs }: AcquireRequest,
  now: number,
): LeaseRecord | undefined {
  const own = holders.get(holder)
  return own === undefined || own.released ? undefined : extend(state, own, now + ttlMs)
}

function busy(name: NameRecord, now: number): AcquireResult {
  return { acquired: false, until: Math.min(...liveHolders(name, now).map(expiryOf)), now }
}

/** A repeated request keeps the position in the queue and extends its expiry. */
function keepPlace(state: MemoryState, name: NameRecord, request: AcquireRequest, now: number): void {
  const { holder, ttlMs, permits, instance, floor, waitMs = 0 } = request
  const place = name.waiters.get(holder)
  const isSame = place?.ttlMs === ttlMs && place.permits === permits
  if (waitMs <= 0 || (isSame && isFreshPlace(place.until, now, waitMs))) return
  name.waiters.set(holder, { holder, ttlMs, permits, instance, floor, until: now + waitMs })
  state.blocked.add(name)
}

function extend(state: MemoryState, lease: LeaseRecord, expiresAt: number): LeaseRecord {
  if (lease.run !== undefined) return lease
  state.locks.remove(lease)
  lease.expiresAt = expiresAt
  state.locks.push(lease)
  return lease
}

export function renewLeases(state: MemoryState, requests: readonly RenewRequest[]): (Lease | undefined)[] {
  const now = state.clock.now()
  return requests.map(({ name, holder, token, ttlMs }) => {
    const lease = state.names.get(name)?.holders.get(holder)
    if (lease === undefined || lease.token !== token || lease.released) return undefined
    return toLease(extend(state, lease, now + ttlMs))
  })
}

export function releaseLease(state: MemoryState, { name: id, holder, minHoldMs = 0 }: ReleaseRequest): boolean {
  const now = state.clock.now()
  const name = state.names.get(id)
  if (name === undefined) return false
  const waited = name.waiters.delete(holder)
  const lease = name.holders.get(holder)
  const held = lease !== undefined && !lease.released && lease.run === undefined
  if (held) giveBackLease(state, lease, minHoldMs, now)
  state.touchedNames.add(name)
  handOn(state, now)
  return held || waited
}

function giveBackLease(state: MemoryState, lease: LeaseRecord, minHoldMs: number, now: number): void {
  const heldUntil = lease.acquiredAt + minHoldMs
  if (heldUntil <= now) dropLease(state, lease)
  else {
    lease.released = true
    extend(state, lease, heldUntil)
  }
}

export function inspectLease(state: MemoryState, name: string): Lease[] {
  const record = state.names.get(name)
  return record === undefined ? [] : liveHolders(record, state.clock.now()).map(toLease)
}

export function listLeases(
  state: MemoryState,
  query: { readonly prefix?: string; readonly after?: string; readonly limit: number },
): Page<Lease> {
  const { prefix = '', after, limit } = query
  checkPageLimit(limit)
  const now = state.clock.now()
  const found = [...state.names.values()]
    .filter(({ name, holders }) => holders.size > 0 && name.startsWith(prefix))
    .flatMap((name) => liveHolders(name, now))
    .map((lease) => ({ lease, place: `${lease.name.name}\n${lease.holder}` }))
    .filter(({ place }) => after === undefined || place > after)
    .sort((one, other) => (one.place < other.place ? -1 : 1))
  const page = found.slice(0, limit)
  const items = page.map(({ lease }) => toLease(lease))
  return found.length > limit ? { items, next: page.at(-1)?.place ?? '' } : { items }
}

export function resetLease(state: MemoryState, id: string): number {
  const name = state.names.get(id)
  if (name === undefined) return 0
  const now = state.clock.now()
  const holders = [...name.holders.values()]
  for (const lease of holders) {
    if (lease.run === undefined) dropLease(state, lease)
    else takeOver(state, lease.run, now, false)
  }
  state.wakes.add('attempts')
  handOn(state, now)
  return holders.length
}
