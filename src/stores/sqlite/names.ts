/**
 * Lease names: how many hold one, who is next, and the handing on that every operation ends with.
 *
 * A holder whose time is over is not counted, but it is only removed by somebody who takes its place. Until then it may
 * renew. If it was a run's attempt, the run is fenced in that same step. The lease of a run's key has no time of its
 * own: it runs out with the instance's.
 */
import type { Lease } from '../../core/lease.js'
import { nextToken } from '../../core/token.js'
import type { Connection } from './connection.js'
import { makeReady } from './run-changes.js'
import { takeOver } from './run-endings.js'
import { RUN_COLUMNS, type RunRecord, type RunRow, runRecord } from './run-row.js'
import { loadRun } from './run-write.js'
import type { Tx } from './tx.js'
import { listTicks } from './unlisted-ticks.js'

export interface LeaseRecord {
  readonly name: string
  readonly holder: string
  readonly token: number
  readonly acquiredAt: number
  readonly expiresAt: number
  readonly instance: string | null
  readonly run: number | null
  readonly released: boolean
}

export type LeaseRow = readonly [
  ...[name: string, holder: string, token: number, acquiredAt: number, expiresAt: number],
  ...[instance: string | null, run: number | null, released: number],
]

/** With the instance as `i`, because it says when the lease of a key runs out. */
export const LEASES = `select l.name, l.holder, l.token, l.acquired_at,
  case when l.run is null then l.expires_at else coalesce(i.expires_at, 0) end as expiry, l.instance, l.run, l.released
  from belfry_leases l left join belfry_instances i on l.run is not null and i.id = l.instance`

const HOLDERS = `${LEASES} where l.name = ? order by l.seq`

export function holdersOf({ db }: { readonly db: Connection }, name: string): LeaseRecord[] {
  return db.all<LeaseRow>(HOLDERS, name).map(leaseRecord)
}

export function leaseRecord([name, holder, token, acquiredAt, expiresAt, ...rest]: LeaseRow): LeaseRecord {
  const [instance, run, released] = rest
  return { name, holder, token, acquiredAt, expiresAt, instance, run, released: released === 1 }
}

export function toLease({ name, holder, token, acquiredAt, expiresAt, instance, run, released }: LeaseRecord): Lease {
  return {
    ...{ name, holder, token, acquiredAt, expiresAt },
    ...(instance === null ? {} : { instance }),
    ...(run === null ? {} : { run: String(run) }),
    ...(released ? { released: true as const } : {}),
  }
}

export function live(holders: readonly LeaseRecord[], now: number): LeaseRecord[] {
  return holders.filter(({ expiresAt }) => expiresAt > now)
}

export function isBusy(tx: Pick<Tx, 'db' | 'now'>, name: string, permits: number): boolean {
  return live(holdersOf(tx, name), tx.now).length >= permits
}

/** Removes holders whose time is over, the longest first, until there is room for one more. */
export function makeRoom(tx: Tx, name: string, permits: number): void {
  const holders = holdersOf(tx, name).sort((one, other) => one.expiresAt - other.expiresAt)
  for (const lease of holders.slice(0, Math.max(holders.length - permits + 1, 0))) {
    if (lease.expiresAt > tx.now) return
    const run = lease.run === null ? undefined : loadRun(tx, lease.run)
    if (run === undefined) dropLease(tx, name, lease.holder)
    else takeOver(tx, run, true)
  }
}

const DROP = 'delete from belfry_leases where name = ? and holder = ?'

export function dropLease({ db, touchedNames }: Tx, name: string, holder: string): void {
  db.run(DROP, name, holder)
  touchedNames.add(name)
}

const LAST_TOKEN = 'select last_token from belfry_names where name = ?'

export function lastToken({ db }: Tx, name: string): number {
  return db.get<[number]>(LAST_TOKEN, name)?.[0] ?? 0
}

const ADD = `insert into belfry_leases (name, holder, token, acquired_at, expires_at, instance, run)
  values (?, ?, ?, ?, ?, ?, ?)`
const NOTE_TOKEN = `insert into belfry_names (name, last_token, freed_at) values (?, ?, null)
  on conflict (name) do update set last_token = excluded.last_token, freed_at = null`

type Grant = Pick<LeaseRecord, 'name' | 'holder' | 'token' | 'instance' | 'run'> & { readonly expiresAt: number | null }

/** Writes down a new holder, and its token as the name's last. */
export function addLease({ db, now }: Tx, { name, holder, token, expiresAt, instance, run }: Grant): void {
  db.run(ADD, name, holder, token, now, expiresAt, instance, run)
  db.run(NOTE_TOKEN, name, token)
}

export interface Waiter {
  readonly holder: string
  readonly ttlMs: number
  readonly permits: number
  readonly instance: string | null
  readonly floor: number
}

/** A lock's new lease. */
export function grantLock(tx: Tx, name: string, { holder, ttlMs, permits, instance, floor }: Waiter): LeaseRecord {
  makeRoom(tx, name, permits)
  const token = nextToken(lastToken(tx, name), tx.now, floor)
  const lease = { name, holder, token, expiresAt: tx.now + ttlMs, instance, run: null }
  addLease(tx, lease)
  return { ...lease, acquiredAt: tx.now, released: false }
}

const FIRST_WAITER = `select holder, ttl_ms, permits, instance, floor, until from belfry_waiters where name = ?
  order by seq limit 1`
const DROP_WAITER = 'delete from belfry_waiters where name = ? and holder = ?'

type WaiterRow = [string, number, number, string | null, number, number]

/**
 * Gives free permits to the locks that wait, oldest first, until the waiter's place would have expired: only asking again
 * proves that it still lives. Places that have expired are gone.
 */
export function serveWaiters(tx: Tx, name: string): void {
  for (;;) {
    const row = tx.db.get<WaiterRow>(FIRST_WAITER, name)
    if (row === undefined) return
    const [holder, ttlMs, permits, instance, floor, until] = row
    if (until > tx.now) {
      if (isBusy(tx, name, permits)) return
      grantLock(tx, name, { holder, ttlMs: Math.min(ttlMs, until - tx.now), permits, instance, floor })
      tx.wakes.add({ handedTo: holder })
    }
    dropWaiter(tx, name, holder)
  }
}

export function dropWaiter({ db }: Tx, name: string, holder: string): boolean {
  return db.run(DROP_WAITER, name, holder) > 0
}

/** Ends every operation: what it freed goes to the oldest that waits for it. */
export function handOn(tx: Tx): void {
  const { touchedNames, touchedLanes } = tx
  while (touchedNames.size > 0 || touchedLanes.size > 0) {
    for (const name of touchedNames) {
      touchedNames.delete(name)
      serveName(tx, name)
    }
    if (touchedLanes.size > 0 && !anyoneWaitsForALane(tx)) touchedLanes.clear()
    for (const lane of touchedLanes) {
      touchedLanes.delete(lane)
      serveLane(tx, lane)
    }
  }
}

/** Locks come before runs: somebody sits and waits for them. */
function serveName(tx: Tx, name: string): void {
  serveWaiters(tx, name)
  wakeRuns(tx, name)
  tidyName(tx, name)
}

const OLDEST_STANDING = 'select min(id) from belfry_runs where key = ? and state = 1 and ready_at <= ?'
const OLDEST_WAITING = `select ${RUN_COLUMNS} from belfry_runs where key = ? and state = 0 and waits_for = 3
  order by id limit 1`

/** The oldest run of a key that is ready and due. */
export function oldestStanding({ db, now }: Pick<Tx, 'db' | 'now'>, name: string): number {
  return db.get<[number | null]>(OLDEST_STANDING, name, now)?.[0] ?? Number.POSITIVE_INFINITY
}

export function oldestWaiting({ db }: Pick<Tx, 'db'>, name: string): RunRecord | undefined {
  const row = db.get<RunRow>(OLDEST_WAITING, name)
  return row === undefined ? undefined : runRecord(row)
}

/**
 * Makes as many waiting runs ready as there are free permits, oldest first. One that waits behind an older run which
 * nobody has claimed yet stays where it is: it could not start.
 */
export function wakeRuns(tx: Tx, name: string): void {
  let run = oldestWaiting(tx, name)
  if (run === undefined) return
  const before = oldestStanding(tx, name)
  let taken = live(holdersOf(tx, name), tx.now).length
  for (; run !== undefined && run.id < before; run = oldestWaiting(tx, name)) {
    if (taken >= (run.key?.limit ?? 1)) return
    taken += 1
    makeReady(tx, run)
  }
}

const ANYONE_WAITS = 'select 1 from belfry_runs where state = 0 and waits_for = 2 limit 1'

export function anyoneWaitsForALane({ db }: Pick<Tx, 'db'>): boolean {
  return db.get(ANYONE_WAITS) !== undefined
}

const LANE_IS_BUSY = `select 1 from belfry_runs
  where schedule = ? and ended is null and waits_for <> 2 and unlisted = 0 and (engaged = 1 or ready_at <= ?) limit 1`
const LANE_FIRST = `select ${RUN_COLUMNS} from belfry_runs where schedule = ? and state = 0 and waits_for = 2
  order by id limit 1`

/** When all that is left of a schedule's runs waits for the others, the oldest goes on. */
function serveLane(tx: Tx, schedule: string): void {
  if (nextInLane(tx, schedule) === undefined) return
  listTicks(tx, schedule)
  const first = nextInLane(tx, schedule)
  if (first !== undefined) makeReady(tx, first)
}

/** The oldest run that waits for others of its schedule, when none of them is listed. */
export function nextInLane({ db, now }: Pick<Tx, 'db' | 'now'>, schedule: string): RunRecord | undefined {
  const row = db.get<RunRow>(LANE_FIRST, schedule)
  return row === undefined || db.get(LANE_IS_BUSY, schedule, now) !== undefined ? undefined : runRecord(row)
}

const FREED = `update belfry_names set freed_at = ?2 where name = ?1 and freed_at is null
  and not exists (select 1 from belfry_leases where name = ?1)
  and not exists (select 1 from belfry_waiters where name = ?1)
  and not exists (select 1 from belfry_runs where key = ?1 and state = 1)
  and not exists (select 1 from belfry_runs where key = ?1 and state = 0)
  and not exists (select 1 from belfry_runs where key = ?1 and state < 3 and attempt > 0)`

/** A name that nobody holds or waits for is kept for its last token, for a while. */
function tidyName({ db, now }: Tx, name: string): void {
  db.run(FREED, name, now)
}
