/**
 * Waiting for locks without touching them. Whoever is told to wait has a place in the lock's line, and whoever frees the
 * lock hands it to the oldest place in the same step. If that one waits in the same process, the answer to the release is
 * all he needs; elsewhere, it is what the commit tells. The others have cost nobody anything.
 *
 * - Whoever is not told looks now and then: one statement that only reads, for all who look at the same time.
 * - A hint that is lost, or a holder that dies: nobody trusts in looking alone for longer than a part of the time that a
 *   place is good for, nor when he finds the lock free. Then he asks in earnest, which keeps his place and takes over
 *   what has run out.
 * - A lease that was handed over a while ago is asked for in earnest, too, so that it is his for its full time.
 * - One that another process handed over lasts only as long as his place: he renews it before he takes it for his own.
 * - One that is handed over while its holder still waits to hear that he has a place: he looks once more.
 * - In the advisory mode a lease counts only if it was given to the session that proves this process alive now.
 */

import { failure } from '../../core/errors.js'
import {
  type AcquireRequest,
  type AcquireResult,
  isFreshPlace,
  type Lease,
  type ReleaseRequest,
} from '../../core/lease.js'
import { acquireLease, takeFree, takeLock } from './acquire.js'
import { textArray } from './connection/array-text.js'
import { CoalescedWrites } from './connection/coalesced-writes.js'
import type { Database } from './connection/database.js'
import type { Wakes } from './connection/wakes.js'
import { FROM, type Handed, leaseOf } from './lease-row.js'
import { renewLeases } from './leases.js'
import { LockTurns } from './lock-turns.js'
import { EXPIRY } from './names.js'
import { type Freed, freeLock, giveBack, releaseLease } from './release.js'
import { type Turn, type TurnTaken, takeTurn } from './take-turn.js'

/** What a place asked for, and what it was told, when it last asked in earnest. */
interface Place {
  readonly permits: number
  readonly ttlMs: number
  readonly waitMs: number
  readonly now: number
  readonly until: number
  /** When it was sent that to which the answer was to wait. */
  readonly askedAt: number
  /** What was handed to it, not before this moment. */
  readonly handed?: { readonly lease: Handed; readonly since: number }
}

interface Seen {
  readonly now: number
  /** How many hold the name. */
  readonly holders: number
  /** When the first of them runs out, as far as they have a time of their own. */
  readonly until: number
  readonly lease: Lease | undefined
}

/** How many shared statements may be under way: one that waits for a name must not hold up all others. */
const AT_ONCE = 4
/** How many crowded names are remembered. */
const MOST_CROWDED = 10_000
/** The part of a lease's time that may have passed since it was handed over. */
const HANDED_OVER = 0.02

const LOOK = `select g.at, n.now_ms, h.live, h.until, own.token, own.acquired_at, own.expires_at, own.instance
  from (select belfry.now_us() / 1000 as now_ms) n cross join unnest($1::text[], $2::text[]) with ordinality as g(name, holder, at)
  cross join lateral (select count(*) as live, min(l.expires_at) as until ${FROM} where l.name = g.name
    and ${EXPIRY} > n.now_ms) h
  left join belfry.leases own on own.name = g.name and own.holder = g.holder and own.run is null and not own.released
    and own.proof is not distinct from $3::integer`

export class LockLines {
  readonly #db: Database
  /** By name, then by holder. */
  readonly #lines = new Map<string, Map<string, Place>>()
  /** Names that were wanted by several when last asked for: what is shorter for others is a detour there. */
  readonly #crowded = new Set<string>()
  /** Who asks in earnest just now, and whether his turn came meanwhile. */
  readonly #asking = new Map<string, boolean>()
  readonly #looks: CoalescedWrites<AcquireRequest, Seen>
  readonly #takes: CoalescedWrites<AcquireRequest, AcquireResult | undefined>
  readonly #returns: CoalescedWrites<ReleaseRequest, Freed>
  readonly #turns: LockTurns
  readonly #wakes: Wakes

  constructor(db: Database, wakes: Wakes) {
    this.#db = db
    this.#wakes = wakes
    this.#turns = new LockTurns((turn) => this.#takeTurn(turn))
    this.#looks = new CoalescedWrites((requests) => lookFor(db, requests))
    this.#takes = new CoalescedWrites((requests) => this.#takeAll(requests), { atOnce: AT_ONCE })
    this.#returns = new CoalescedWrites((requests) => this.#giveBackAll(requests), { atOnce: AT_ONCE })
  }

  /** Somebody was handed a lock by another process: not before he was told to wait. */
  handedElsewhere(lease: Handed): void {
    const place = this.#lines.get(lease.name)?.get(lease.holder)
    if (place !== undefined) this.#hand(lease, place.askedAt)
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const place = this.#lines.get(request.name)?.get(request.holder)
    const { permits, ttlMs, waitMs = 0 } = request
    const isSame = place?.permits === permits && place.ttlMs === ttlMs && place.waitMs === waitMs
    const found = isSame ? await this.#find(request, place) : undefined
    if (found !== undefined && !found.acquired) return found
    const result = found ?? (await this.#ask(request))
    if (result.acquired || (request.waitMs ?? 0) <= 0) this.#leave(request)
    return result
  }

  /** What a waiter has by now, as far as that is known without a place being taken. */
  async #find(request: AcquireRequest, place: Place): Promise<AcquireResult | undefined> {
    const { handed } = place
    if (handed !== undefined && isBrief(handed.lease, request.ttlMs)) return this.#confirm(request, handed.lease)
    return (await this.#takeHanded(request, place)) ?? this.#look(request, place)
  }

  /** A lease that another process handed over is extended to its full time, unless it has been taken since. */
  async #confirm({ name, holder, ttlMs, remote = false }: AcquireRequest, { token }: Handed) {
    const [lease] = await renewLeases(this.#db, [{ name, holder, token, ttlMs, remote }], { again: true })
    if (lease === undefined) return undefined
    return { acquired: true as const, lease, now: lease.expiresAt - Math.ceil(ttlMs) }
  }

  async release(request: ReleaseRequest): Promise<boolean> {
    this.#leave(request)
    if (this.#lines.has(request.name)) return wasHeld(request, await this.#turns.release(request))
    const [freed] = (request.minHoldMs ?? 0) <= 0 ? await this.#returns.write([request]) : []
    if (freed === 'freed') return true
    const { had, isInDoubt } = await this.#release(request)
    return wasHeld(request, { had, isInDoubt: isInDoubt || freed === 'in doubt' })
  }

  async #giveBackAll(requests: readonly ReleaseRequest[]): Promise<Freed[]> {
    const [only] = requests
    if (only !== undefined && requests.length === 1) return [await this.#free(only)]
    return giveBack(this.#db, requests)
  }

  async #takeAll(requests: readonly AcquireRequest[]): Promise<(AcquireResult | undefined)[]> {
    const [only] = requests
    if (only !== undefined && requests.length === 1) return [await this.#takeOne(only)]
    return takeFree(this.#db, requests)
  }

  async #free(request: ReleaseRequest): Promise<Freed> {
    if (this.#crowded.has(request.name)) return 'not freed'
    const freed = await freeLock(this.#db, request)
    if (freed !== 'freed') this.#crowd(request.name)
    return freed
  }

  /** Undefined when others want it, too. */
  async #takeOne(request: AcquireRequest): Promise<AcquireResult | undefined> {
    if (this.#crowded.has(request.name)) return undefined
    const result = await takeLock(this.#db, request)
    if (result === undefined) this.#crowd(request.name)
    return result
  }

  #crowd(name: string): void {
    if (this.#crowded.size >= MOST_CROWDED) this.#crowded.clear()
    this.#crowded.add(name)
  }

  async #release(request: ReleaseRequest): Promise<Released> {
    const sentAt = this.#db.clock.monotonic()
    const released = await releaseLease(this.#db, request, this.#here(request.name))
    for (const lease of released.handed) this.#hand(lease, sentAt)
    return released
  }

  async #takeTurn(turn: Turn): Promise<TurnTaken> {
    const sentAt = this.#db.clock.monotonic()
    const taken = await takeTurn(this.#db, turn, this.#here(turn.name))
    for (const lease of taken.handed) this.#hand(lease, sentAt)
    return taken
  }

  #here(name: string): string[] {
    return [...(this.#lines.get(name)?.keys() ?? [])]
  }

  #hand(lease: Handed, since: number): void {
    const { name, holder } = lease
    const line = this.#lines.get(name)
    const place = line?.get(holder)
    if (place !== undefined) line?.set(holder, { ...place, handed: { lease, since } })
    if (this.#asking.has(holder)) this.#asking.set(holder, true)
    this.#wakes.handedTo(holder)
  }

  /** In earnest. Whoever waits has his place before he asks, so that whoever frees the lock meanwhile finds him here. */
  async #ask(request: AcquireRequest): Promise<AcquireResult> {
    const { holder, permits, ttlMs, waitMs = 0 } = request
    if (waitMs <= 0) return this.#take(request)
    const askedAt = this.#db.clock.monotonic()
    const isFirst = !this.#lines.has(request.name)
    this.#standIn(request, { permits, ttlMs, waitMs, now: 0, until: 0, askedAt })
    this.#asking.set(holder, false)
    try {
      const result = await (isFirst ? this.#take(request) : this.#takePlace(request))
      if (result.acquired) return result
      const handed = this.#lines.get(request.name)?.get(holder)?.handed
      const answer = { permits, ttlMs, waitMs, now: result.now, until: result.until, askedAt }
      const place = handed === undefined ? answer : { ...answer, handed }
      this.#standIn(request, place)
      if (!this.#asking.get(holder)) return result
      return (await this.#find(request, place)) ?? result
    } catch (error) {
      this.#leave(request)
      throw error
    } finally {
      this.#asking.delete(holder)
    }
  }

  async #takePlace(request: AcquireRequest): Promise<AcquireResult> {
    const { now, until } = await this.#turns.place(request)
    return { acquired: false, now, until }
  }

  /** What may well be free is asked for together with others. */
  async #take(request: AcquireRequest): Promise<AcquireResult> {
    // Those that are taken together prove together that they live.
    const [taken] = request.remote ? [await this.#takeOne(request)] : await this.#takes.write([request])
    const result = taken ?? (await acquireLease(this.#db, request))
    // Had at once: nobody else wants it any more.
    if (result.acquired) this.#crowded.delete(request.name)
    return result
  }

  #standIn({ name, holder }: AcquireRequest, place: Place): void {
    const line = this.#lines.get(name) ?? new Map<string, Place>()
    this.#lines.set(name, line.set(holder, place))
  }

  #leave({ name, holder }: Pick<AcquireRequest, 'name' | 'holder'>): void {
    const line = this.#lines.get(name)
    if (line?.delete(holder) && line.size === 0) this.#lines.delete(name)
  }

  /** What was handed over just now needs no asking. */
  async #takeHanded({ ttlMs }: AcquireRequest, { handed }: Place): Promise<AcquireResult | undefined> {
    if (handed === undefined) return undefined
    if ((await this.#db.withProof(async (proof) => proof)) !== handed.lease.proof) return undefined
    if (this.#db.clock.monotonic() - handed.since > ttlMs * HANDED_OVER) return undefined
    return { acquired: true, lease: leaseOf(handed.lease), now: handed.lease.acquiredAt }
  }

  /** Undefined when it is time to ask in earnest. */
  async #look(request: AcquireRequest, { now: askedAt, until }: Place): Promise<AcquireResult | undefined> {
    const [seen] = await this.#looks.write([request])
    if (seen === undefined) return undefined
    const { now, lease, holders } = seen
    const waitMs = request.waitMs ?? 0
    if (lease !== undefined) {
      const isFresh = lease.expiresAt - now >= request.ttlMs * (1 - HANDED_OVER)
      return isFresh ? { acquired: true, lease, now } : undefined
    }
    const mayLook = holders >= request.permits && now < until && isFreshPlace(askedAt + waitMs, now, waitMs)
    return mayLook ? { acquired: false, until: Math.min(until, seen.until), now } : undefined
  }
}

/** A lease that another process handed over, and that lasts for less than its time until it is asked for. */
function isBrief({ acquiredAt, expiresAt }: Handed, ttlMs: number): boolean {
  return expiresAt - acquiredAt < ttlMs
}

interface Released {
  readonly had: boolean
  readonly isInDoubt: boolean
}

function wasHeld({ name }: ReleaseRequest, { had, isInDoubt }: Released): boolean {
  if (!had && isInDoubt) throw releaseInDoubt(name)
  return had
}

async function lookFor(db: Database, requests: readonly AcquireRequest[]): Promise<Seen[]> {
  const names = textArray(requests.map(({ name }) => name))
  const holders = textArray(requests.map(({ holder }) => holder))
  const rows = await db.withProof((proof) => db.read(LOOK, [names, holders, proof]), { again: true })
  const seen = requests.map((): Seen => ({ now: 0, holders: 0, until: 0, lease: undefined }))
  for (const [place, now, holders, until, token, acquiredAt, expiresAt, instance] of rows) {
    const at = Number(place) - 1
    const { name = '', holder = '' } = requests[at] ?? {}
    const times = { acquiredAt: Number(acquiredAt), expiresAt: Number(expiresAt) }
    const who = instance === null || instance === undefined ? {} : { instance }
    const lease = token === null ? undefined : { name, holder, token: Number(token), ...times, ...who }
    const untilMs = until === null ? Number.POSITIVE_INFINITY : Number(until)
    seen[at] = { now: Number(now), holders: Number(holders), until: untilMs, lease }
  }
  return seen
}

function releaseInDoubt(lock: string) {
  return failure(
    'STORE_UNREACHABLE',
    `the connection broke while the lock "${lock}" was released: it is free now, but the store no longer knows whether it was still held`,
  )
}
