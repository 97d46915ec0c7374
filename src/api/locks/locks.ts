import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/clock.js'
import { errorRecord, failure } from '../../core/errors.js'
import type { AcquireRequest, Lease } from '../../core/lease.js'
import type { Logger } from '../../core/logger.js'
import type { Mutable } from '../../core/mutable.js'
import { checkName } from '../../core/names.js'
import type { Page, Store } from '../../core/store.js'
import type { TokenFloor } from '../../core/token.js'
import { HeldLock, type LockObserver } from '../../engine/locks/held-lock.js'
import type { LockKeeper } from '../../engine/locks/lock-keeper.js'
import { type Duration, durationMs } from '../../time/duration.js'
import { listQuery } from '../list-query.js'
import { located } from '../located.js'
import { checkToken, type GrantOptions, type GrantRef, parseGrant } from './grant-options.js'
import { Lock } from './lock.js'
import { checkTtl, type LockOptions, type LockTerms, parseLockOptions } from './lock-options.js'

/** A waiter asks again at least this often; whoever frees the lock hands it over, so asking is only looking. */
const ASK_MS = 250
/**
 * A waiter that has not asked for this long has lost its place, and a lock that was handed to it meanwhile. So waiters that
 * were killed hold up those behind them for this long in all, however many they are.
 */
const PLACE_MS = 1_500

interface Granted {
  readonly lease: Lease
  readonly sentAt: number
}

export class Locks {
  readonly #store: Store
  readonly #clock: Clock
  readonly #log: Logger
  readonly #floor: TokenFloor
  readonly #keeper: LockKeeper
  readonly #instance: () => string
  /** Those who wait, by holder. */
  readonly #waiters = new Map<string, () => void>()
  /** How many ask for a lock, and who waits for the last of them. */
  #asking = 0
  #nobodyAsks = () => {}
  #closed = false
  readonly #unsubscribe: () => void

  constructor(store: Store, clock: Clock, log: Logger, floor: TokenFloor, keeper: LockKeeper, instance: () => string) {
    this.#store = store
    this.#clock = clock
    this.#log = log
    this.#floor = floor
    this.#keeper = keeper
    this.#instance = instance
    const unsubscribe = store.subscribe((wake, holder) => {
      if (wake !== 'leases') return
      if (holder !== undefined) this.#waiters.get(holder)?.()
      else this.#lookAll()
    })
    const forgetLoss = store.onLost?.((why) => {
      for (const lock of keeper.held) lock.lose(why)
    })
    this.#unsubscribe = () => {
      unsubscribe()
      forgetLoss?.()
    }
  }

  /** In order of name: who holds what, since when, until when. Keys of exclusive runs are among them. */
  async list(
    query: { readonly prefix?: string; readonly after?: string; readonly limit?: number } = {},
  ): Promise<Page<Lease>> {
    return this.#store.leases.list(listQuery(query, ['prefix', 'after'], 'locks.list()'))
  }

  async inspect(name: string): Promise<readonly Lease[]> {
    return this.#store.leases.inspect(checkName(name, 'lock name'))
  }

  /** Takes a lock from whoever holds it. Their next renewal fails and their signal fires. */
  async reset(name: string): Promise<number> {
    return this.#store.leases.reset(checkName(name, 'lock name'))
  }

  async acquire(name: string, options?: LockOptions): Promise<Lock | undefined> {
    checkName(name, 'lock name')
    const terms = parseLockOptions(name, options)
    const again = options?.holder?.reenter()
    if (again !== undefined && again.name !== name) {
      throw failure('OPTION_INVALID', `lock "${name}": the holder given holds "${again.name}"`)
    }
    if (again !== undefined)
      return this.#enterAgain(again, options?.ttl === undefined ? 0 : terms.ttlMs, terms.minHoldMs)
    this.#asking += 1
    try {
      const granted = await this.#ask(name, randomUUID(), terms.ttlMs, terms.permits, terms.waitMs)
      if (granted !== undefined) return this.#keep(granted, terms)
      this.#log.debug({ lock: name }, 'lock not obtained: it is held elsewhere')
      return undefined
    } finally {
      this.#hasAsked()
    }
  }

  #keep({ lease, sentAt }: Granted, { ttlMs, minHoldMs, renew, heartbeatMs }: LockTerms): Lock {
    const held = new HeldLock(lease, { ttlMs, sentAt, renew, heartbeatMs }, this.#clock, this.#observer)
    held.minHoldMs = minHoldMs
    this.#keeper.keep(held)
    return new Lock(held, this)
  }

  /**
   * Gives a lock to somebody who is no part of this process, for so long as it says: nothing renews it here, and it outlives
   * this process. The same holder asking again gets the same lease, extended. Undefined when others have it.
   */
  async grant(name: string, options: GrantOptions = {}): Promise<Lease | undefined> {
    checkName(name, 'lock name')
    const { holder, signal, ttlMs, waitMs, permits } = parseGrant(name, options)
    this.#asking += 1
    try {
      return (await this.#ask(name, holder, ttlMs, permits, waitMs, true, signal))?.lease
    } finally {
      this.#hasAsked()
    }
  }

  /** Extends what `grant` gave. Undefined when it is no longer the holder's. */
  async renewGrant(name: string, grant: GrantRef, ttl?: Duration): Promise<Lease | undefined> {
    checkToken(checkName(name, 'lock name'), grant.token)
    const { ttlMs } = parseGrant(name, ttl === undefined ? {} : { ttl })
    const holder = await this.#holderOf(name, grant)
    if (holder === undefined) return undefined
    const [lease] = await this.#store.leases.renew([{ name, holder, token: grant.token, ttlMs, remote: true }])
    return lease
  }

  /** Gives back what `grant` gave. False when it was no longer the holder's. */
  async releaseGrant(name: string, grant: GrantRef): Promise<boolean> {
    checkToken(name, grant.token)
    const lease = (await this.inspect(name)).find(({ token }) => token === grant.token)
    // An expired lease is not listed. It is still the holder's if it can be renewed, which proves that nobody took it.
    const own = lease ?? (grant.holder === undefined ? undefined : await this.renewGrant(name, grant))
    // The instance that executes a run releases the run's key.
    if (own === undefined || own.run !== undefined) return false
    if (grant.holder !== undefined && grant.holder !== own.holder) return false
    return this.#store.leases.release({ name, holder: own.holder })
  }

  /** A lease that has run out is not listed, but may be extended: only who knows its holder can ask for that. */
  async #holderOf(name: string, { token, holder }: GrantRef): Promise<string | undefined> {
    if (holder !== undefined) return checkName(holder, `holder of lock "${name}"`)
    const lease = (await this.inspect(name)).find((each) => each.token === token)
    return lease?.run === undefined ? lease?.holder : undefined
  }

  async extend(held: HeldLock, ttl: Duration): Promise<boolean> {
    const ttlMs = located(`lock "${held.name}"`, () => checkTtl(held.name, durationMs(ttl)))
    const sentAt = this.#clock.monotonic()
    const { name, holder, token } = held
    const [lease] = await this.#store.leases.renew([{ name, holder, token, ttlMs }])
    if (lease === undefined) held.lose('somebody else has it, or it was reset')
    else {
      held.extended(lease, ttlMs, sentAt)
      this.#keeper.extended(held)
    }
    return lease !== undefined
  }

  /**
   * The store's answer decides, not the local clock: an expired lease that nobody took was never shared with another
   * holder, and a holder that was blocked or stopped past its TTL has not noticed yet that somebody took it.
   */
  async release(held: HeldLock): Promise<boolean> {
    held.acquisitions -= 1
    if (held.acquisitions > 0) return held.isTrusted || (!held.isLost && (await this.extend(held, held.ttlMs)))
    this.#keeper.drop(held)
    // Stopping has given it back, and closed the store.
    if (this.#closed) return false
    const { name, holder, minHoldMs } = held
    this.#asking += 1
    try {
      const wasHeld = await this.#store.leases.release(minHoldMs === 0 ? { name, holder } : { name, holder, minHoldMs })
      if (!wasHeld) held.lose('its TTL passed and another holder took it, or it was reset')
      return wasHeld
    } finally {
      this.#hasAsked()
    }
  }

  /**
   * Releases a lock whose work is done. When the store does not answer, the lock stays taken until its TTL has passed, and
   * the local clock decides whether it was held until now.
   */
  async end(held: HeldLock): Promise<boolean> {
    const { isTrusted } = held
    try {
      return await this.release(held)
    } catch (error) {
      this.#log.warn(
        { lock: held.name, err: errorRecord(error) },
        'a lock could not be released: it stays taken until its TTL has passed',
      )
      if (!isTrusted) held.lose('its TTL passed, and the store did not answer')
      return isTrusted
    }
  }

  /** Tells of a loss, wherever it was noticed. Stopping gives locks back on purpose: that is no reason to warn. */
  readonly #observer: LockObserver = {
    lost: (held) => {
      if (!this.#closed) {
        this.#log.warn({ lock: held.name, token: held.token, why: held.loss?.message }, 'a lock was lost')
      }
      this.#keeper.lost(held)
    },
    inDoubt: () => this.#keeper.inDoubt(),
  }

  /** Gives back all that this process still holds, and the places where it waits. */
  async close(): Promise<void> {
    this.#closed = true
    this.#unsubscribe()
    this.#lookAll()
    await this.#untilNobodyAsks()
    const held = this.#keeper.held
    for (const lock of held) {
      lock.lose('the instance was stopped')
      this.#keeper.drop(lock)
    }
    this.#keeper.close()
    // One that the store cannot be told of runs out by itself.
    await Promise.allSettled(held.map(({ name, holder }) => this.#store.leases.release({ name, holder })))
  }

  /**
   * Enters a lock that is held: the same lease with the same token, extended and never shortened. One that was lost is
   * not to be entered: a new lease would pass off the work of the old token as the holder's.
   */
  async #enterAgain(held: HeldLock, ttlMs: number, minHoldMs: number): Promise<Lock | undefined> {
    // Counted before the store is asked, so that a release in the meantime is not the last.
    held.acquisitions += 1
    let entered = false
    try {
      entered = await this.extend(held, Math.max(held.ttlMs, ttlMs))
    } finally {
      if (!entered) await this.release(held)
    }
    if (!entered) return undefined
    held.minHoldMs = Math.max(held.minHoldMs, minHoldMs)
    return new Lock(held, this)
  }

  #hasAsked(): void {
    this.#asking -= 1
    if (this.#asking === 0) this.#nobodyAsks()
  }

  #untilNobodyAsks(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#asking === 0) resolve()
      else this.#nobodyAsks = resolve
    })
  }

  async #ask(
    name: string,
    holder: string,
    ttlMs: number,
    permits: number,
    waitMs: number,
    remote = false,
    signal?: AbortSignal,
  ): Promise<Granted | undefined> {
    const until = waitMs > 0 ? this.#clock.monotonic() + waitMs : 0
    const instance = this.#instance()
    // A lease is trusted from when it was asked for: the time that opening the store takes must not count.
    await this.#store.open()
    for (;;) {
      if (this.#closed) await this.#refuse(name, holder)
      const sentAt = this.#clock.monotonic()
      const { value: floor } = this.#floor
      const request: Mutable<AcquireRequest> = { name, holder, ttlMs, permits, floor, instance }
      if (remote) request.remote = true
      if (until > sentAt) request.waitMs = PLACE_MS
      const result = await this.#store.leases.acquire(request)
      this.#floor.sawTime(result.now)
      if (result.acquired) {
        this.#floor.sawToken(result.lease.token)
        // Whoever asked is no longer there to hear that he has it.
        if (signal?.aborted) return this.#giveUp(name, holder)
        return { lease: result.lease, sentAt }
      }
      const leftMs = until - this.#clock.monotonic()
      if (leftMs <= 0 || signal?.aborted) return waitMs > 0 ? this.#giveUp(name, holder) : undefined
      await this.#pause(holder, Math.min(leftMs, ASK_MS, Math.max(result.until - result.now, 1)))
    }
  }

  async #giveUp(name: string, holder: string): Promise<undefined> {
    await this.#store.leases.release({ name, holder })
  }

  async #refuse(name: string, holder: string): Promise<never> {
    await this.#store.leases.release({ name, holder })
    throw failure('NOT_RUNNING', `lock "${name}": this instance was stopped, and takes no more locks`)
  }

  /** Sleeps, or until a hint says that a lock was freed, or handed to this holder. */
  async #pause(holder: string, delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = () => {
        cancel()
        this.#waiters.delete(holder)
        resolve()
      }
      const cancel = this.#clock.after(delayMs, look)
      this.#waiters.set(holder, look)
    })
  }

  #lookAll(): void {
    for (const look of [...this.#waiters.values()]) look()
  }
}
