/**
 * Locks, and the keys of runs: both are permits of a name, up to a limit.
 *
 *            acquire, claim               release, end of the run
 *     free ──────────────────────► held ──────────────────────────► free, or handed off if it is waited for
 *                                  │  ▲
 *                          expires ▼  │ renew, acquire again
 *                                expired ── another one acquires ──► held by the other one
 *
 *     handed off ── the waiter asks again in time ──► held
 *     handed off ── the waiter's place expires ─────► expired
 *     held ── release before the minimum hold ──────► released ── the hold is over ──► free, or handed off
 *
 * A permit is handed off to the oldest lock that waits, else to the oldest runs that wait: they become ready and claim it. A
 * released holder cannot renew.
 *
 * One rule decides everything: a permit belongs to its holder until it has expired AND another holder took it.
 *
 * - Two concurrent requests: the first takes the permit, the second finds it busy. `until` says when to ask again, and with
 *   `waitMs` the second has a place in the queue.
 * - A holder that stalls past its expiry and comes back: if no other holder took the permit, it renews and goes on. Otherwise
 *   its record is gone, and renew, release and, for a run, settle are refused.
 * - A holder that dies: the next request after the expiry takes the permit, with a higher token. If the holder was a run's
 *   attempt, the same operation takes the run over.
 * - A waiter that dies: its place expires `waitMs` after it last asked, and with it a lock that was handed to it meanwhile.
 */
import { type AcquireRequest, type AcquireResult, isFreshPlace } from '../../../core/locks/lease.js'
import { nextToken } from '../../../core/locks/token.js'
import { takeOver } from '../runs/transitions.js'
import { type LeaseRecord, type MemoryState, type NameRecord, nameOf, type Waiter } from '../schema/state.js'
import { expiryOf, toLease } from './lease-codec.js'
import { grantWaiters } from './pass-on.js'
import { dropHolder } from './release.js'
import { extend } from './renew.js'

export function acquireLease(state: MemoryState, request: AcquireRequest): AcquireResult {
  const { now } = state
  const name = nameOf(state, request.name)
  state.freedNames.add(name)
  const lease = takePermit(state, name, request)
  if (lease !== undefined) {
    name.waiters.delete(request.holder)
    return { acquired: true, lease: toLease(lease), now }
  }
  keepPlace(state, name, request)
  return { acquired: false, until: Math.min(...liveHolders(name, now).map(expiryOf)), now }
}

function takePermit(state: MemoryState, name: NameRecord, request: AcquireRequest): LeaseRecord | undefined {
  const held = extendOwn(state, name, request)
  if (held !== undefined) return held
  // Waiters come first, and the one that asks may be the oldest of them.
  grantWaiters(state, name)
  const handed = extendOwn(state, name, request)
  if (handed !== undefined) return handed
  if (isBusy(state, name, request.permits)) return undefined
  const released = name.holders.get(request.holder)
  if (released !== undefined) dropHolder(state, released)
  return grantLock(state, name, { ...request, instance: request.instance })
}

function extendOwn(state: MemoryState, { holders }: NameRecord, { holder, ttlMs }: AcquireRequest) {
  const own = holders.get(holder)
  return own === undefined || own.released ? undefined : extend(state, own, state.now + ttlMs)
}

/** Asking again keeps the place in the queue. */
function keepPlace(state: MemoryState, name: NameRecord, request: AcquireRequest): void {
  const { holder, ttlMs, permits, instance, floor, waitMs = 0 } = request
  const place = name.waiters.get(holder)
  const isSame = place?.ttlMs === ttlMs && place.permits === permits
  if (waitMs <= 0 || (isSame && isFreshPlace(place.until, state.now, waitMs))) return
  name.waiters.set(holder, { holder, ttlMs, permits, instance, floor, until: state.now + waitMs })
  state.blocked.add(name)
}

/** An expired holder is not counted, but it is removed only when another holder takes its permit. */
export function liveHolders(name: NameRecord, now: number): LeaseRecord[] {
  return [...name.holders.values()].filter((lease) => expiryOf(lease) > now)
}

export function isBusy({ now }: MemoryState, name: NameRecord, permits: number): boolean {
  return name.holders.size >= permits && liveHolders(name, now).length >= permits
}

/** Gives a free permit to a lock. */
export function grantLock(state: MemoryState, name: NameRecord, request: Omit<Waiter, 'until'>): LeaseRecord {
  const { holder, ttlMs, permits, instance, floor } = request
  makeRoom(state, name, permits)
  const token = nextToken(name.lastToken, state.now, floor)
  const expiresAt = state.now + ttlMs
  return addHolder(state, name, { holder, token, expiresAt, instance, run: undefined, owner: undefined })
}

type Grant = Pick<LeaseRecord, 'holder' | 'token' | 'expiresAt' | 'instance' | 'run' | 'owner'>

/** Records a new holder, and its token as the last one of the name. */
export function addHolder(state: MemoryState, name: NameRecord, grant: Grant): LeaseRecord {
  const lease: LeaseRecord = { ...grant, name, acquiredAt: state.now, released: false }
  name.lastToken = grant.token
  name.holders.set(grant.holder, lease)
  state.heldNames.add(name.name)
  if (grant.run === undefined) state.locks.push(lease)
  return lease
}

/** Removes expired holders, the longest expired first, until there is room for one more. */
export function makeRoom(state: MemoryState, name: NameRecord, permits: number): void {
  while (name.holders.size >= permits) {
    const [longest] = [...name.holders.values()].sort((one, other) => expiryOf(one) - expiryOf(other))
    if (longest === undefined || expiryOf(longest) > state.now) return
    if (longest.run === undefined) dropHolder(state, longest)
    else takeOver(state, longest.run, true)
  }
}
