/**
 * The waiters of this process, and what they know without asking the database to take a place again.
 *
 * A waiter has a place in the lock's queue, and the operation that frees the lock hands it to the oldest place in the
 * same step. If that waiter is in the same process, the answer to the release tells it; elsewhere, the notification that
 * goes with the commit.
 *
 * - A waiter that was not told looks now and then: one read for all that look at the same time.
 * - A hint that is lost, or a holder that dies: no waiter trusts in looking for longer than a part of the time that its
 *   place lasts, nor when it finds the lock free. Then it acquires, which keeps its place and takes over what has run out.
 * - A lease that was handed over a while ago is acquired, too, so that it lasts for its full time.
 * - A lease that another process handed over lasts only as long as the waiter's place: the waiter renews it first.
 * - A lease that is handed over while the waiter's acquisition is in flight: it looks once more.
 * - In the advisory mode a lease counts only if it was given to the session that proves this process alive now.
 */
import {
  type AcquireRequest,
  type AcquireResult,
  isFreshPlace,
  type ReleaseRequest,
} from '../../../core/locks/lease.js'
import { CoalescedWrites } from '../connection/coalesced-writes.js'
import type { Database } from '../connection/database.js'
import type { Wakes } from '../connection/wakes.js'
import { acquireFree, acquireLock } from './acquire.js'
import { type Handed, leaseOf } from './lease-codec.js'
import { lookAtLocks, type Seen } from './look.js'
import { type Freed, inDoubt, releaseLock, releaseUnwaited } from './release.js'
import { renewLeases } from './renew.js'

/** What a waiter asked for, and what it was told, when it last acquired. */
interface Place {
  readonly permits: number
  readonly ttlMs: number
  readonly waitMs: number
  readonly now: number
  readonly until: number
  /** When the acquisition was sent that told it to wait. */
  readonly askedAt: number
  /** What was handed to it, not before this moment. */
  readonly handed?: { readonly lease: Handed; readonly since: number }
}

/** How many shared statements may be in flight: one that waits for a name must not hold up all others. */
const AT_ONCE = 4
/** The part of a lease's time that may have passed since it was handed over. */
const HANDED_OVER = 0.02

export class LockWaiters {
  readonly #db: Database
  readonly #wakes: Wakes
  /** By name, then by holder. */
  readonly #queues = new Map<string, Map<string, Place>>()
  /** Holders whose acquisition is in flight, and whether the lock was handed to them meanwhile. */
  readonly #asking = new Map<string, boolean>()
  readonly #looks: CoalescedWrites<AcquireRequest, Seen>
  readonly #acquisitions: CoalescedWrites<AcquireRequest, AcquireResult | undefined>
  readonly #releases: CoalescedWrites<ReleaseRequest, Freed>

  constructor(db: Database, wakes: Wakes) {
    this.#db = db
    this.#wakes = wakes
    this.#looks = new CoalescedWrites((requests) => lookAtLocks(db, requests))
    this.#acquisitions = new CoalescedWrites((requests) => this.#acquireAll(requests), { atOnce: AT_ONCE })
    this.#releases = new CoalescedWrites((requests) => this.#releaseAll(requests), { atOnce: AT_ONCE })
  }

  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const place = this.#queues.get(request.name)?.get(request.holder)
    const { permits, ttlMs, waitMs = 0 } = request
    const isSame = place?.permits === permits && place.ttlMs === ttlMs && place.waitMs === waitMs
    const found = isSame ? await this.#find(request, place) : undefined
    if (found !== undefined && !found.acquired) return found
    const result = found ?? (await this.#ask(request))
    if (result.acquired || waitMs <= 0) this.#leave(request)
    return result
  }

  async release(request: ReleaseRequest): Promise<boolean> {
    this.#leave(request)
    const isAlone = (request.minHoldMs ?? 0) <= 0 && !this.#queues.has(request.name)
    const [freed] = isAlone ? await this.#releases.write([request]) : []
    if (freed === 'freed') return true
    const sentAt = this.#db.clock.monotonic()
    const { had, isInDoubt, handed } = await releaseLock(this.#db, request, this.#holdersOf(request.name))
    for (const lease of handed) this.#hand(lease, sentAt)
    if (!had && (isInDoubt || freed === 'in doubt')) throw inDoubt(request.name)
    return had
  }

  /** Another process handed a lock to a waiter, not before that waiter was told to wait. */
  handedElsewhere(lease: Handed): void {
    const place = this.#queues.get(lease.name)?.get(lease.holder)
    if (place !== undefined) this.#hand(lease, place.askedAt)
  }

  #hand(lease: Handed, since: number): void {
    const { name, holder } = lease
    const queue = this.#queues.get(name)
    const place = queue?.get(holder)
    if (place !== undefined) queue?.set(holder, { ...place, handed: { lease, since } })
    if (this.#asking.has(holder)) this.#asking.set(holder, true)
    this.#wakes.handedTo(holder)
  }

  /** Acquires. A waiter is registered before it asks, so that a concurrent release finds it here. */
  async #ask(request: AcquireRequest): Promise<AcquireResult> {
    const { holder, permits, ttlMs, waitMs = 0 } = request
    if (waitMs <= 0) return this.#acquireNow(request)
    const askedAt = this.#db.clock.monotonic()
    const isFirst = !this.#queues.has(request.name)
    this.#register(request, { permits, ttlMs, waitMs, now: 0, until: 0, askedAt })
    this.#asking.set(holder, false)
    try {
      const result = await (isFirst ? this.#acquireNow(request) : acquireLock(this.#db, request))
      if (result.acquired) return result
      const handed = this.#queues.get(request.name)?.get(holder)?.handed
      const answer = { permits, ttlMs, waitMs, now: result.now, until: result.until, askedAt }
      const place = handed === undefined ? answer : { ...answer, handed }
      this.#register(request, place)
      if (!this.#asking.get(holder)) return result
      return (await this.#find(request, place)) ?? result
    } catch (error) {
      this.#leave(request)
      throw error
    } finally {
      this.#asking.delete(holder)
    }
  }

  /** Together with others that are acquired now, where it may well be free. A remote holder's lease has no proof of life. */
  async #acquireNow(request: AcquireRequest): Promise<AcquireResult> {
    const [taken] = request.remote ? [] : await this.#acquisitions.write([request])
    return taken ?? acquireLock(this.#db, request)
  }

  async #acquireAll(requests: readonly AcquireRequest[]): Promise<(AcquireResult | undefined)[]> {
    const [only] = requests
    if (only !== undefined && requests.length === 1) return [await acquireLock(this.#db, only)]
    return acquireFree(this.#db, requests)
  }

  /** Alone, it goes the way of one that others may wait for. */
  async #releaseAll(requests: readonly ReleaseRequest[]): Promise<Freed[]> {
    return requests.length === 1 ? ['not freed'] : releaseUnwaited(this.#db, requests)
  }

  /** What a waiter has by now, as far as that is known without acquiring again. */
  async #find(request: AcquireRequest, place: Place): Promise<AcquireResult | undefined> {
    const { handed } = place
    const isBrief = handed !== undefined && handed.lease.expiresAt - handed.lease.acquiredAt < request.ttlMs
    if (isBrief) return this.#confirm(request, handed.lease)
    return (await this.#takeHanded(request, place)) ?? this.#look(request, place)
  }

  /** A lease that another process handed over is extended to its full time, unless it has been taken since. */
  async #confirm({ name, holder, ttlMs, remote = false }: AcquireRequest, { token }: Handed) {
    const [lease] = await renewLeases(this.#db, [{ name, holder, token, ttlMs, remote }], { again: true })
    if (lease === undefined) return undefined
    return { acquired: true as const, lease, now: lease.expiresAt - Math.ceil(ttlMs) }
  }

  /** What was handed over just now needs no asking. */
  async #takeHanded({ ttlMs }: AcquireRequest, { handed }: Place): Promise<AcquireResult | undefined> {
    if (handed === undefined) return undefined
    if ((await this.#db.withProof(async (proof) => proof)) !== handed.lease.proof) return undefined
    if (this.#db.clock.monotonic() - handed.since > ttlMs * HANDED_OVER) return undefined
    return { acquired: true, lease: leaseOf(handed.lease), now: handed.lease.acquiredAt }
  }

  /** Undefined when it is time to acquire again. */
  async #look(request: AcquireRequest, { now: askedAt, until }: Place): Promise<AcquireResult | undefined> {
    const [seen] = await this.#looks.write([request])
    if (seen === undefined) return undefined
    const { now, lease, holders } = seen
    const { ttlMs, permits, waitMs = 0 } = request
    if (lease !== undefined) {
      const isFresh = lease.expiresAt - now >= ttlMs * (1 - HANDED_OVER)
      return isFresh ? { acquired: true, lease, now } : undefined
    }
    const mayLook = holders >= permits && now < until && isFreshPlace(askedAt + waitMs, now, waitMs)
    return mayLook ? { acquired: false, until: Math.min(until, seen.until), now } : undefined
  }

  #register({ name, holder }: AcquireRequest, place: Place): void {
    const queue = this.#queues.get(name) ?? new Map<string, Place>()
    this.#queues.set(name, queue.set(holder, place))
  }

  #leave({ name, holder }: Pick<AcquireRequest, 'name' | 'holder'>): void {
    const queue = this.#queues.get(name)
    if (queue?.delete(holder) && queue.size === 0) this.#queues.delete(name)
  }

  #holdersOf(name: string): string[] {
    return [...(this.#queues.get(name)?.keys() ?? [])]
  }
}
