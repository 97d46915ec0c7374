import { hostname } from 'node:os'
import type { Clock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import { describeHolders, newHolder } from '../../core/locks/holder.js'
import type { Lease } from '../../core/locks/lease.js'
import type { TokenFloor } from '../../core/locks/token.js'
import type { Logger } from '../../core/logger.js'
import { checkName } from '../../core/names/names.js'
import type { Page, Store } from '../../core/store.js'
import type { LockKeeper } from '../../engine/locks/lock-keeper.js'
import type { Duration } from '../../time/duration.js'
import { listQuery } from '../list-query.js'
import { HeldLocks } from './held-locks.js'
import { InFlight } from './in-flight.js'
import { LeaseRequests } from './lease-requests.js'
import type { Lock } from './lock.js'
import { type LockOptions, type LockTerms, parseLockOptions } from './lock-options.js'
import { type GrantOptions, type GrantRef, grantRequest, releaseGrant, renewGrant } from './remote-leases.js'

export interface LocksOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly floor: TokenFloor
  readonly keeper: LockKeeper
  readonly instance: () => string
}

export class Locks {
  readonly #store: Store
  readonly #log: Logger
  readonly #requests: LeaseRequests
  readonly #held: HeldLocks
  readonly #inFlight = new InFlight()
  readonly #host = hostname()
  readonly #unsubscribe: () => void

  constructor(options: LocksOptions) {
    const { store, log, keeper } = options
    this.#store = store
    this.#log = log
    this.#requests = new LeaseRequests(options)
    this.#held = new HeldLocks({ ...options, inFlight: this.#inFlight })
    const endHints = store.subscribe((wake, holder) => {
      if (wake === 'leases') this.#requests.wake(holder)
    })
    const endLosses = store.onLost?.((why) => {
      for (const lock of keeper.held) lock.lose(why)
    })
    this.#unsubscribe = () => {
      endHints()
      endLosses?.()
    }
  }

  /** Leases in order of name, including keys of exclusive runs. */
  async list(
    query: { readonly prefix?: string; readonly after?: string; readonly limit?: number } = {},
  ): Promise<Page<Lease>> {
    return this.#store.leases.list(listQuery(query, ['prefix', 'after'], 'locks.list()'))
  }

  async inspect(name: string): Promise<readonly Lease[]> {
    return this.#store.leases.inspect(checkName(name, 'lock name'))
  }

  /** Who holds a lock, since when and until when, as text for an error. */
  async describe(name: string): Promise<string> {
    return describeHolders(await this.inspect(name))
  }

  /** Takes a lock from all its holders. Their next renewal fails and their signal fires. */
  async reset(name: string): Promise<number> {
    return this.#store.leases.reset(checkName(name, 'lock name'))
  }

  /** Undefined when another holder has the lock. */
  async acquire(name: string, options?: LockOptions): Promise<Lock | undefined> {
    checkName(name, 'lock name')
    const terms = parseLockOptions(name, options)
    const held = options?.holder?.reenter()
    if (held === undefined) return this.#inFlight.track(this.#acquire(name, terms))
    if (held.name !== name) throw failure('OPTION_INVALID', `lock "${name}": the holder given holds "${held.name}"`)
    return this.#held.enterAgain(held, options?.ttl === undefined ? 0 : terms.ttlMs, terms.minHoldMs)
  }

  /**
   * Grants a lease to a holder outside this process. It lasts for its TTL unless the holder renews it by `renewGrant`.
   * A holder that asks again gets the same lease, extended. Undefined when other holders have it.
   */
  async grant(name: string, options: GrantOptions = {}): Promise<Lease | undefined> {
    const granted = await this.#inFlight.track(this.#requests.acquire(grantRequest(name, options)))
    return granted?.lease
  }

  /** Extends a granted lease. Undefined when it is no longer the holder's. */
  async renewGrant(name: string, grant: GrantRef, ttl?: Duration): Promise<Lease | undefined> {
    return renewGrant(this.#store.leases, name, grant, ttl)
  }

  /** Releases a granted lease. False when it was no longer the holder's. */
  async releaseGrant(name: string, grant: GrantRef): Promise<boolean> {
    return releaseGrant(this.#store.leases, name, grant)
  }

  /** Releases all locks that this process holds, and its places in waiter queues. */
  async close(): Promise<void> {
    this.#unsubscribe()
    this.#requests.close()
    await this.#inFlight.idle()
    await this.#held.close()
  }

  async #acquire(name: string, terms: LockTerms): Promise<Lock | undefined> {
    const { ttlMs, permits, waitMs, as } = terms
    const holder = newHolder({ as, host: this.#host, pid: process.pid })
    const granted = await this.#requests.acquire({ name, holder, ttlMs, permits, waitMs })
    if (granted !== undefined) return this.#held.add(granted, terms)
    this.#log.debug({ lock: name }, 'lock not obtained: it is held elsewhere')
    return undefined
  }
}
