/**
 * The lock keeper renews the locks that this process holds, every quarter of their TTL, in one call for all that are
 * due.
 *
 * - A failed renewal is repeated with the next step. Two more fit before trust in the lease ends. Then the lock's
 *   signal fires, whether the store can be reached or not (`held-lock.ts`).
 * - The main loop is blocked: the beat thread renews the same locks (`instances/beat-thread.ts`).
 * - The loop runs only while there is a lock to renew, so that a process without locks can end. An alarm starts the
 *   loop when the first renewal is due, because most locks are released before that. The alarm stays set between locks,
 *   and keeps the process alive only while a lock is held.
 */
import { type Alarm, type Clock, NO_ALARM, setAlarm } from '../../core/clock.js'
import type { Logger } from '../../core/logger.js'
import type { Store } from '../../core/store.js'
import type { Events } from '../events.js'
import type { Health } from '../health.js'
import type { BeatThread } from '../instances/beat-thread.js'
import { Loop } from '../loop.js'
import type { HeldLock, LockObserver } from './held-lock.js'
import { lockNames } from './lock-names.js'

export interface LockKeeperOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
  readonly health: Health
  readonly beatThread: BeatThread
}

const NAME = 'lock keeper'

export class LockKeeper implements LockObserver {
  readonly #options: LockKeeperOptions
  readonly #held = new Set<HeldLock>()
  readonly #renewed = new Set<HeldLock>()
  #loop: Loop | undefined
  #alarm: Alarm = NO_ALARM
  /** When the alarm or the loop looks for the next renewal. */
  #nextAt = Number.POSITIVE_INFINITY
  #isClosed = false

  constructor(options: LockKeeperOptions) {
    this.#options = options
  }

  /** The locks that this process has not released, including lost ones. */
  get held(): readonly HeldLock[] {
    return [...this.#held]
  }

  /** Names the locks for warnings: `lock "import", lock "report" and 3 more`. The code that holds one may block the loop. */
  get names(): string {
    return lockNames([...this.#held].map(({ name }) => name))
  }

  keep(lock: HeldLock): void {
    this.#held.add(lock)
    this.extended(lock)
  }

  /** Schedules the next renewal after an acquisition or an `extend()`. Renewals begin again if the lock was lost before. */
  extended(lock: HeldLock): void {
    if (!lock.renews || lock.isLost || !this.#held.has(lock)) return
    if (this.#renewed.size === 0) this.#alarm.ref()
    this.#renewed.add(lock)
    this.#options.beatThread.hold(lock.renewal)
    if (lock.renewAt >= this.#nextAt) return
    if (this.#loop === undefined) this.#setAlarm(lock.renewAt)
    else this.#loop.wake()
  }

  drop(lock: HeldLock): void {
    lock.forget()
    this.#held.delete(lock)
    this.#stopRenewing(lock)
  }

  lost(lock: HeldLock): void {
    const { log, events } = this.#options
    const { name, token, loss } = lock
    // A stopping process releases its locks on purpose, which is not worth a warning.
    if (!this.#isClosed) log.warn({ lock: name, token, why: loss?.message }, 'a lock was lost')
    events.emit('lock:lost', { name, token })
    this.#stopRenewing(lock)
  }

  inDoubt(): void {
    this.#loop?.wake()
  }

  /** Ends all renewals. Returns the locks that the caller has to release. */
  close(): readonly HeldLock[] {
    this.#isClosed = true
    const { held } = this
    for (const lock of held) {
      lock.lose('the instance was stopped')
      this.drop(lock)
    }
    this.#alarm.close()
    return held
  }

  #setAlarm(at: number): void {
    const { clock, health } = this.#options
    this.#alarm.close()
    this.#nextAt = at
    this.#alarm = setAlarm(clock, at - clock.monotonic(), () => {
      this.#alarm = NO_ALARM
      this.#nextAt = Number.POSITIVE_INFINITY
      if (this.#renewed.size === 0) return
      this.#loop = new Loop({ name: NAME, clock, health, step: () => this.#renewDue() })
      this.#loop.start()
    })
  }

  async #renewDue(): Promise<number> {
    const { store, clock, beatThread } = this.#options
    const now = clock.monotonic()
    // The next renewal is unknown until the reply arrives. A lock that is added meanwhile wakes the loop.
    this.#nextAt = Number.POSITIVE_INFINITY
    const due = [...this.#renewed].filter(({ renewAt }) => renewAt <= now)
    if (due.length > 0) {
      const leases = await store.leases.renew(
        due.map(({ name, holder, token, ttlMs }) => ({ name, holder, token, ttlMs })),
      )
      for (const [at, lock] of due.entries()) {
        const lease = leases[at]
        if (!this.#renewed.has(lock)) continue
        if (lease === undefined) lock.lose('another holder has it, or it was reset')
        else {
          lock.extended(lease, lock.ttlMs, now)
          beatThread.hold(lock.renewal)
        }
      }
    }
    for (const { renewAt } of this.#renewed) this.#nextAt = Math.min(this.#nextAt, renewAt)
    return Math.max(this.#nextAt - clock.monotonic(), 0)
  }

  #stopRenewing(lock: HeldLock): void {
    if (this.#renewed.delete(lock)) this.#options.beatThread.drop(lock.holder)
    if (this.#renewed.size > 0) return
    this.#alarm.unref()
    if (this.#loop === undefined) return
    void this.#loop.stop()
    this.#loop = undefined
    this.#nextAt = Number.POSITIVE_INFINITY
    this.#options.health.forget(NAME)
  }
}
