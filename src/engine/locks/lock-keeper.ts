/**
 * Renews the locks that this process holds, every quarter of their TTL, in one call for all that are due. It works only
 * while something is held, and begins when the first renewal is due; most locks are given back before that, so the alarm
 * for it stays set for those who come after them. A renewal that fails is tried again with the next step; two more fit
 * before trust runs out, and when it does the lock's signal fires, whether or not the store can be reached.
 */
import { type Alarm, type Clock, NO_ALARM, setAlarm } from '../../core/clock.js'
import type { Store } from '../../core/store.js'
import type { Events } from '../events.js'
import type { Health } from '../health.js'
import type { BeatThread } from '../instances/beat-thread.js'
import { Loop } from '../loop.js'
import type { HeldLock, LockObserver } from './held-lock.js'

const PART = 'lock keeper'

export class LockKeeper implements LockObserver {
  readonly #store: Store
  readonly #clock: Clock
  readonly #events: Events
  readonly #health: Health
  readonly #beatThread: BeatThread
  readonly #held = new Set<HeldLock>()
  /** How many of them are renewed. */
  #renewing = 0
  #loop: Loop | undefined
  /** When the next renewal is looked for. */
  #nextAt = Number.POSITIVE_INFINITY
  #alarm: Alarm = NO_ALARM

  constructor(store: Store, clock: Clock, health: Health, events: Events, beatThread: BeatThread) {
    this.#beatThread = beatThread
    this.#store = store
    this.#clock = clock
    this.#health = health
    this.#events = events
  }

  /**
   * Takes care of a lock until it is dropped. It is watched from when the first renewal is due, which is long before any
   * trust runs out: most locks are given back before that.
   */
  keep(lock: HeldLock): void {
    this.#held.add(lock)
    if (!lock.renews || this.#loop !== undefined) lock.watch()
    this.extended(lock)
  }

  /** The lock was extended by hand: its next renewal is at another time, or comes again at all. */
  extended(lock: HeldLock): void {
    if (!lock.renews || lock.isLost || !this.#held.has(lock)) return
    if (this.#renewing === 0) this.#alarm.ref()
    if (!lock.isRenewed) this.#renewing += 1
    lock.isRenewed = true
    this.#beatThread.hold(lock.renewal)
    if (lock.renewAt >= this.#nextAt) return
    if (this.#loop === undefined) this.#setAlarm(lock.renewAt)
    else this.#loop.wake()
  }

  drop(lock: HeldLock): void {
    lock.forget()
    this.#held.delete(lock)
    this.#renewNoMore(lock)
  }

  lost(lock: HeldLock): void {
    this.#events.emit('lock:lost', { name: lock.name, token: lock.token })
    this.#renewNoMore(lock)
  }

  inDoubt(): void {
    this.#loop?.wake()
  }

  close(): void {
    this.#alarm.close()
  }

  get held(): readonly HeldLock[] {
    return [...this.#held]
  }

  #setAlarm(at: number): void {
    this.#alarm.close()
    this.#nextAt = at
    this.#alarm = setAlarm(this.#clock, at - this.#clock.monotonic(), () => {
      this.#alarm = NO_ALARM
      this.#nextAt = Number.POSITIVE_INFINITY
      for (const lock of this.#held) lock.watch()
      if (this.#renewing === 0) return
      this.#loop = new Loop({ name: PART, clock: this.#clock, health: this.#health, step: () => this.#renewDue() })
      this.#loop.start()
    })
  }

  async #renewDue(): Promise<number> {
    const now = this.#clock.monotonic()
    // Until it is known, whoever comes meanwhile is looked at after this.
    this.#nextAt = Number.POSITIVE_INFINITY
    const due = [...this.#held].filter((lock) => lock.isRenewed && lock.renewAt <= now)
    if (due.length > 0) {
      const requests = due.map(({ name, holder, token, ttlMs }) => ({ name, holder, token, ttlMs }))
      const leases = await this.#store.leases.renew(requests)
      for (const [at, lock] of due.entries()) {
        const lease = leases[at]
        if (!lock.isRenewed) continue
        if (lease === undefined) lock.lose('somebody else has it, or it was reset')
        else {
          lock.extended(lease, lock.ttlMs, now)
          this.#beatThread.hold(lock.renewal)
        }
      }
    }
    for (const lock of this.#held) if (lock.isRenewed) this.#nextAt = Math.min(this.#nextAt, lock.renewAt)
    return Math.max(this.#nextAt - this.#clock.monotonic(), 0)
  }

  #renewNoMore(lock: HeldLock): void {
    if (lock.isRenewed) {
      this.#renewing -= 1
      this.#beatThread.drop(lock.holder)
    }
    lock.isRenewed = false
    if (this.#renewing === 0) this.#rest()
  }

  /** Nothing to renew: the loop ends, and the process is not kept alive for the alarm. */
  #rest(): void {
    this.#alarm.unref()
    if (this.#loop === undefined) return
    void this.#loop.stop()
    this.#loop = undefined
    this.#nextAt = Number.POSITIVE_INFINITY
    this.#health.forget(PART)
  }
}
