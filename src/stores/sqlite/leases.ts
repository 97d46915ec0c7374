/**
 * Locks. One rule decides everything: a lease is its holder's until its time is over AND somebody else took it.
 *
 * - Two that ask at once: the file has one writer, so one is first and takes the permit; the second finds it busy. Its
 *   `until` says when to ask again, and with `waitMs` it has a place in the line.
 * - A holder that stalls past its time and comes back: if nobody took the lease, it renews and goes on. If somebody
 *   did, its row is gone, and renew, release and (for a run) settle are refused.
 * - A holder that dies: nobody has to notice. The next that asks takes its place, with a higher token.
 * - A waiter that asks again while it has to wait: it only looks, and writes before its place expires.
 * - A waiter that dies: its place expires `waitMs` after it last asked, and with it a lease that was handed to it in
 *   between, unless it has asked again.
 * - A release that comes twice, or late: it only ever removes the holder's own row.
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
import { afterPrefix } from '../../core/text-order.js'
import type { Connection } from './connection.js'
import {
  dropLease,
  dropWaiter,
  grantLock,
  handOn,
  holdersOf,
  isBusy,
  LEASES,
  type LeaseRecord,
  type LeaseRow,
  leaseRecord,
  live,
  serveWaiters,
  toLease,
} from './names.js'
import { takeOver } from './run-endings.js'
import { loadRun } from './run-write.js'
import type { Tx } from './tx.js'
import { type Steps, stepwise } from './write-queue.js'

const OWN = `${LEASES} where l.name = ? and l.holder = ?`

function ownLease({ db }: Tx, name: string, holder: string): LeaseRecord | undefined {
  const row = db.get<LeaseRow>(OWN, name, holder)
  return row === undefined ? undefined : leaseRecord(row)
}

export function acquireLease(tx: Tx, request: AcquireRequest): AcquireResult {
  const { name, holder } = request
  const { now } = tx
  const lease = takePermit(tx, request)
  if (lease === undefined) keepPlace(tx, request)
  else dropWaiter(tx, name, holder)
  const result: AcquireResult =
    lease === undefined ? busy(live(holdersOf(tx, name), now), now) : { acquired: true, lease: toLease(lease), now }
  tx.touchedNames.add(name)
  handOn(tx)
  return result
}

function takePermit(tx: Tx, request: AcquireRequest): LeaseRecord | undefined {
  const { name, holder, ttlMs, permits, instance = null, floor } = request
  const held = extendOwn(tx, request)
  if (held !== undefined) return held
  serveWaiters(tx, name)
  const handed = extendOwn(tx, request)
  if (handed !== undefined) return handed
  if (isBusy(tx, name, permits)) return undefined
  if (ownLease(tx, name, holder) !== undefined) dropLease(tx, name, holder)
  return grantLock(tx, name, { holder, ttlMs, permits, instance, floor })
}

function extendOwn(tx: Tx, { name, holder, ttlMs }: AcquireRequest): LeaseRecord | undefined {
  const own = ownLease(tx, name, holder)
  return own === undefined || own.released ? undefined : extend(tx, own, tx.now + ttlMs)
}

const PLACE = 'select until from belfry_waiters where name = ? and holder = ? and ttl_ms = ? and permits = ?'

/** Whether a waiter has a place that need not be prolonged yet. */
function hasFreshPlace(db: Connection, now: number, request: AcquireRequest): boolean {
  const { name, holder, ttlMs, permits, waitMs = 0 } = request
  const place = waitMs > 0 ? db.get<[number]>(PLACE, name, holder, ttlMs, permits) : undefined
  return place !== undefined && isFreshPlace(place[0], now, waitMs)
}

/** What a waiter is told that still has to wait, without the file's one writer. Undefined for all that has to be written. */
export function lookForLease(db: Connection, now: number, request: AcquireRequest): AcquireResult | undefined {
  if (!hasFreshPlace(db, now, request)) return undefined
  const holders = live(holdersOf({ db }, request.name), now)
  return holders.length < request.permits ? undefined : busy(holders, now)
}

function busy(holders: readonly LeaseRecord[], now: number): AcquireResult {
  return { acquired: false, until: Math.min(...holders.map(({ expiresAt }) => expiresAt)), now }
}

const KEEP_PLACE = `insert into belfry_waiters (name, holder, ttl_ms, permits, instance, floor, until)
  values (?, ?, ?, ?, ?, ?, ?)
  on conflict (name, holder) do update set ttl_ms = excluded.ttl_ms, permits = excluded.permits,
    instance = excluded.instance, floor = excluded.floor, until = excluded.until`

/** Asking again keeps the place and prolongs it. */
function keepPlace({ db, now }: Tx, request: AcquireRequest): void {
  const { name, holder, ttlMs, permits, instance = null, floor, waitMs = 0 } = request
  if (waitMs > 0 && !hasFreshPlace(db, now, request))
    db.run(KEEP_PLACE, name, holder, ttlMs, permits, instance, floor, now + waitMs)
}

const EXTEND = 'update belfry_leases set expires_at = ?, released = ? where name = ? and holder = ?'

function extend({ db }: Tx, lease: LeaseRecord, expiresAt: number, released = false): LeaseRecord {
  if (lease.run !== null) return lease
  db.run(EXTEND, expiresAt, released ? 1 : 0, lease.name, lease.holder)
  return { ...lease, expiresAt, released }
}

export function renewLeases(tx: Tx, requests: readonly RenewRequest[]): Steps<(Lease | undefined)[]> {
  return stepwise(requests, ({ name, holder, token, ttlMs }) => {
    const lease = ownLease(tx, name, holder)
    if (lease === undefined || lease.token !== token || lease.released) return undefined
    return toLease(extend(tx, lease, tx.now + ttlMs))
  })
}

export function releaseLease(tx: Tx, { name, holder, minHoldMs = 0 }: ReleaseRequest): boolean {
  const waited = dropWaiter(tx, name, holder)
  const lease = ownLease(tx, name, holder)
  const held = lease !== undefined && !lease.released && lease.run === null
  if (held) {
    const heldUntil = lease.acquiredAt + minHoldMs
    if (heldUntil <= tx.now) dropLease(tx, name, holder)
    else extend(tx, lease, heldUntil, true)
  }
  tx.touchedNames.add(name)
  handOn(tx)
  return held || waited
}

export function inspectLease(db: Connection, now: number, name: string): Lease[] {
  return live(holdersOf({ db }, name), now).map(toLease)
}

const LIST = `${LEASES}
  where (l.name > ?1 or (l.name = ?1 and l.holder > ?2)) and l.name >= ?3 and l.name < ?4 and expiry > ?5
  order by l.name, l.holder limit ?6`

export function listLeases(
  db: Connection,
  now: number,
  query: { readonly prefix?: string; readonly after?: string; readonly limit: number },
): Page<Lease> {
  const { prefix = '', after = '', limit } = query
  checkPageLimit(limit)
  const [name = '', holder = ''] = after.split('\n')
  const rows = db.all<LeaseRow>(LIST, name, holder, prefix, afterPrefix(prefix), now, limit + 1)
  const items = rows.slice(0, limit).map((row) => toLease(leaseRecord(row)))
  const last = items.at(-1)
  return rows.length > limit && last !== undefined ? { items, next: `${last.name}\n${last.holder}` } : { items }
}

export function resetLease(tx: Tx, name: string): number {
  const holders = holdersOf(tx, name)
  for (const lease of holders) {
    const run = lease.run === null ? undefined : loadRun(tx, lease.run)
    if (run === undefined) dropLease(tx, name, lease.holder)
    else takeOver(tx, run, false)
  }
  tx.wakes.add('attempts')
  handOn(tx)
  return holders.length
}
