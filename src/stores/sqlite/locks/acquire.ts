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
 * - Two concurrent requests: the file has one writer, so one is first and takes the permit. The second finds it busy; `until`
 *   says when to ask again, and with `waitMs` it has a place in the queue.
 * - A holder that stalls past its expiry and comes back: if no other holder took the permit, it renews and goes on. Otherwise
 *   its row is gone, and renew, release and, for a run, settle are refused.
 * - A holder that dies: the next request after the expiry takes the permit, with a higher token. If the holder was a run's
 *   attempt, the same transaction takes the run over.
 * - A waiter that asks again while the lock is busy only reads, until its place has to be extended.
 * - A waiter that dies: its place expires `waitMs` after it last asked, and with it a lock that was handed to it meanwhile.
 */
import { type AcquireRequest, type AcquireResult, isFreshPlace } from '../../../core/locks/lease.js'
import { nextToken } from '../../../core/locks/token.js'
import { change, row, rows } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import { runById, takeOver } from '../runs/transitions.js'
import source from './acquire.sql'
import { type LeaseRow, toLease } from './lease-codec.js'
import { grantWaiters } from './pass-on.js'
import { dropHolder, dropWaiter } from './release.js'
import { extend } from './renew.js'

export function acquireLease(tx: Tx, request: AcquireRequest): AcquireResult {
  const { name, holder } = request
  const lease = takePermit(tx, request)
  if (lease !== undefined) {
    dropWaiter(tx, { name, holder })
    return { acquired: true, lease: toLease(lease), now: tx.now }
  }
  keepPlace(tx, request)
  return busy(liveHolders(tx, name), tx.now)
}

function takePermit(tx: Tx, request: AcquireRequest): LeaseRow | undefined {
  const { name, holder, ttlMs, permits, instance = null, floor } = request
  const held = extendOwn(tx, request)
  if (held !== undefined) return held
  // Waiters come first, and the one that asks may be the oldest of them.
  grantWaiters(tx, name)
  const handed = extendOwn(tx, request)
  if (handed !== undefined) return handed
  if (isBusy(tx, name, permits)) return undefined
  // What is left of the holder's own was released before its minimum hold was over.
  dropHolder(tx, name, holder)
  return grantLock(tx, { name, holder, ttlMs, permits, instance, floor })
}

function extendOwn(tx: Tx, { name, holder, ttlMs }: AcquireRequest): LeaseRow | undefined {
  const own = holderOf(tx, { name, holder })
  return own === undefined || own.released === 1 ? undefined : extend(tx, own, tx.now + ttlMs)
}

export const holdersOf = rows<{ name: string }, LeaseRow>(source, 'holdersOf')
export const holderOf = row<{ name: string; holder: string }, LeaseRow>(source, 'holderOf')

/** An expired holder is not counted, but it is removed only when another holder takes its permit. */
export function liveHolders(snapshot: Snapshot, name: string): LeaseRow[] {
  return holdersOf(snapshot, { name }).filter(({ expires_at }) => expires_at > snapshot.now)
}

export function isBusy(snapshot: Snapshot, name: string, permits: number): boolean {
  return liveHolders(snapshot, name).length >= permits
}

/** What a lock asks for, as a waiter's row has it. */
export type LockTerms = {
  readonly name: string
  readonly holder: string
  readonly ttlMs: number
  readonly permits: number
  readonly instance: string | null
  readonly floor: number
}

/** Gives a free permit to a lock. */
export function grantLock(tx: Tx, { name, holder, ttlMs, permits, instance, floor }: LockTerms): LeaseRow {
  makeRoom(tx, name, permits)
  const token = leastToken(tx, name, floor)
  const expiresAt = tx.now + ttlMs
  addHolder(tx, { name, holder, token, run: null, instance, expiresAt })
  const run = { run: null, run_mark: null }
  return { name, holder, token, ...run, instance, acquired_at: tx.now, expires_at: expiresAt, released: 0 }
}

const lastToken = row<{ name: string }, { last_token: number }>(source, 'lastToken')

/** The least token that the next holder of a name may have. */
export function leastToken(tx: Tx, name: string, floor: number): number {
  return nextToken(lastToken(tx, { name })?.last_token ?? 0, tx.now, floor)
}

type Holder = Pick<LeaseRow, 'name' | 'holder' | 'token' | 'run' | 'instance'> & { expiresAt: number | null }
const insertHolder = change<Holder>(source, 'addHolder')
const noteToken = change<{ name: string; token: number }>(source, 'noteToken')

/** Records a new holder, and its token as the last one of the name. */
export function addHolder(tx: Tx, holder: Holder): void {
  insertHolder(tx, holder)
  noteToken(tx, holder)
}

/** Removes expired holders, the longest expired first, until there is room for one more. */
export function makeRoom(tx: Tx, name: string, permits: number): void {
  const holders = [...holdersOf(tx, { name })].sort((one, other) => one.expires_at - other.expires_at)
  for (const { holder, run: id, expires_at } of holders.slice(0, Math.max(holders.length - permits + 1, 0))) {
    if (expires_at > tx.now) return
    const run = id === null ? undefined : runById(tx, { id })
    if (run === undefined) dropHolder(tx, name, holder)
    else takeOver(tx, run, true)
  }
}

/**
 * Answers a waiter that has to go on waiting, by a read alone; undefined when something has to be written. Waiters ask every
 * 250 ms, and would keep the file's one writer busy if each question were a write.
 */
export function lookForLease(snapshot: Snapshot, request: AcquireRequest): AcquireResult | undefined {
  if (!hasFreshPlace(snapshot, request)) return undefined
  const holders = liveHolders(snapshot, request.name)
  return holders.length < request.permits ? undefined : busy(holders, snapshot.now)
}

type Place = Pick<LockTerms, 'name' | 'holder' | 'ttlMs' | 'permits'>
const placeOf = row<Place, { until: number }>(source, 'placeOf')
const writePlace = change<LockTerms & { until: number }>(source, 'keepPlace')

/** Whether a waiter has a place that need not be extended yet. */
function hasFreshPlace(snapshot: Snapshot, { name, holder, ttlMs, permits, waitMs = 0 }: AcquireRequest): boolean {
  const place = waitMs > 0 ? placeOf(snapshot, { name, holder, ttlMs, permits }) : undefined
  return place !== undefined && isFreshPlace(place.until, snapshot.now, waitMs)
}

function keepPlace(tx: Tx, request: AcquireRequest): void {
  const { name, holder, ttlMs, permits, instance = null, floor, waitMs = 0 } = request
  if (waitMs <= 0 || hasFreshPlace(tx, request)) return
  writePlace(tx, { name, holder, ttlMs, permits, instance, floor, until: tx.now + waitMs })
}

function busy(holders: readonly LeaseRow[], now: number): AcquireResult {
  return { acquired: false, until: Math.min(...holders.map(({ expires_at }) => expires_at)), now }
}
