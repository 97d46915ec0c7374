/**
 * Lease names: the holders, the waiters, and the hand-off at the end of every operation.
 *
 * An expired holder is not counted, but it is removed only when another holder takes its permit. Until then it may
 * renew. If it was a run's attempt, the run is fenced in that same step.
 */
import type { Lease } from '../../core/lease.js'
import { nextToken } from '../../core/token.js'
import { NOWHERE } from './heap.js'
import { makeReady } from './run-changes.js'
import { takeOver } from './run-endings.js'
import type { Lane, LeaseRecord, MemoryState, NameRecord, Waiter } from './state.js'

export function expiryOf(lease: LeaseRecord): number {
  return lease.owner === undefined ? lease.expiresAt : lease.owner.expiresAt
}

export function liveHolders(name: NameRecord, now: number): LeaseRecord[] {
  return [...name.holders.values()].filter((lease) => expiryOf(lease) > now)
}

function countLive({ holders }: NameRecord, now: number): number {
  let live = 0
  for (const lease of holders.values()) if (expiryOf(lease) > now) live += 1
  return live
}

export function isBusy(name: NameRecord, permits: number, now: number): boolean {
  return name.holders.size >= permits && countLive(name, now) >= permits
}

/** Removes expired holders, the longest expired first, until one permit is free. */
export function makeRoom(state: MemoryState, name: NameRecord, permits: number, now: number): void {
  while (name.holders.size >= permits) {
    const [longest] = [...name.holders.values()].sort((one, other) => expiryOf(one) - expiryOf(other))
    if (longest === undefined || expiryOf(longest) > now) return
    if (longest.run === undefined) dropLease(state, longest)
    else takeOver(state, longest.run, now, true)
  }
}

export function dropLease(state: MemoryState, lease: LeaseRecord): void {
  lease.name.holders.delete(lease.holder)
  if (lease.place !== NOWHERE) state.locks.remove(lease)
  if (lease.run !== undefined) lease.run.lease = undefined
  state.touchedNames.add(lease.name)
}

type Grant = Pick<LeaseRecord, 'holder' | 'token' | 'expiresAt' | 'instance' | 'run' | 'owner'>

/** Adds a holder, and stores its token as the name's last. */
export function addLease(state: MemoryState, name: NameRecord, grant: Grant, now: number): LeaseRecord {
  const { holder, token, expiresAt, instance, run, owner } = grant
  const lease: LeaseRecord = {
    ...{ name, holder, token, acquiredAt: now, expiresAt, instance, run, owner },
    released: false,
    place: NOWHERE,
  }
  name.lastToken = token
  name.holders.set(holder, lease)
  if (name.freed !== undefined) {
    state.freedNames.remove(name.freed)
    name.freed = undefined
  }
  if (run === undefined) state.locks.push(lease)
  return lease
}

/** The new lease of a lock. */
export function grantLock(
  state: MemoryState,
  name: NameRecord,
  { holder, ttlMs, permits, instance, floor }: Omit<Waiter, 'until'>,
  now: number,
): LeaseRecord {
  makeRoom(state, name, permits, now)
  const token = nextToken(name.lastToken, now, floor)
  const grant = { holder, token, expiresAt: now + ttlMs, instance, run: undefined, owner: undefined }
  return addLease(state, name, grant, now)
}

/**
 * Gives free permits to waiting locks, oldest first, with a lease until the waiter's position expires: only a repeated
 * request proves that the waiter is alive. Expired positions are removed.
 */
export function serveWaiters(state: MemoryState, name: NameRecord, now: number): void {
  for (const waiter of name.waiters.values()) {
    if (waiter.until > now) {
      if (isBusy(name, waiter.permits, now)) return
      grantLock(state, name, { ...waiter, ttlMs: Math.min(waiter.ttlMs, waiter.until - now) }, now)
      state.wakes.add({ handedTo: waiter.holder })
    }
    name.waiters.delete(waiter.holder)
  }
}

/** Ends every operation: hands what it freed to the oldest waiter. */
export function handOn(state: MemoryState, now: number): void {
  while (state.touchedNames.size > 0 || state.touchedLanes.size > 0) {
    for (const name of state.touchedNames) {
      state.touchedNames.delete(name)
      serveName(state, name, now)
    }
    for (const lane of state.touchedLanes) {
      state.touchedLanes.delete(lane)
      serveLane(state, lane, now)
    }
  }
}

/** Locks come before runs, because a caller is blocked waiting for a lock. */
export function serveName(state: MemoryState, name: NameRecord, now: number): void {
  serveWaiters(state, name, now)
  wakeRuns(state, name, now)
  if (name.waiters.size === 0 && (name.line === undefined || name.line.waiting.size === 0)) state.blocked.delete(name)
  tidyName(state, name, now)
}

/**
 * Makes as many waiting runs ready as there are free permits, oldest first. A run that waits behind an older unclaimed
 * run stays waiting: it could not start.
 */
export function wakeRuns(state: MemoryState, name: NameRecord, now: number): void {
  if (name.line === undefined || name.line.waiting.size === 0) return
  const { waiting, standing } = name.line
  const before = standing.first?.order ?? Number.POSITIVE_INFINITY
  let taken = countLive(name, now)
  for (let run = waiting.first; run !== undefined && run.order < before; run = waiting.first) {
    if (taken >= (run.key?.limit ?? 1)) return
    taken += 1
    makeReady(state, run, now)
  }
}

/** When all unfinished runs of a schedule wait for earlier ones, makes the oldest ready. */
function serveLane(state: MemoryState, lane: Lane, now: number): void {
  const run = lane.waiting.first
  if (run !== undefined && lane.engaged.size === lane.waiting.size) makeReady(state, run, now)
}

function tidyName(state: MemoryState, name: NameRecord, now: number): void {
  const { line } = name
  if (line !== undefined && line.engaged.size === 0 && line.delayed.size === 0 && line.waiting.size === 0) {
    name.line = undefined
  }
  if (name.holders.size > 0 || name.waiters.size > 0 || name.line !== undefined || name.freed !== undefined) return
  if (name.lastToken === 0) state.names.delete(name.name)
  else {
    name.freedAt = now
    name.freed = state.freedNames.append(name)
  }
}

export function toLease(lease: LeaseRecord): Lease {
  return Object.freeze({
    name: lease.name.name,
    holder: lease.holder,
    token: lease.token,
    acquiredAt: lease.acquiredAt,
    expiresAt: expiryOf(lease),
    ...(lease.instance === undefined ? {} : { instance: lease.instance }),
    ...(lease.run === undefined ? {} : { run: lease.run.id }),
    ...(lease.released ? { released: true as const } : {}),
  })
}
