/**
 * Sends beats and renewals when the main thread is late with its own. This code runs in the beat thread; while the main
 * loop turns, it sends nothing. It connects to the store half an interval after an instance has joined or a lock was
 * acquired, so that the connection is there when it is needed. Most locks are released before that and need none.
 *
 * A beat from here only extends the instance's lease. It says that no claim was answered, so the store gives no run back.
 * The main thread learns with its own next beat which runs were lost or cancelled, and whether the instance was declared
 * dead.
 *
 * What it survives:
 * - The main loop is blocked: when its beat is half an interval late, one is sent from here, until the loop turns again.
 * - The main loop is blocked for longer than `maxBlock`: the process counts as dead, and nothing more is sent.
 * - The whole process is stopped: both threads are, and the lease expires as it should.
 * - The store declared the instance dead, or another holder has a lock: it is removed from the list here.
 * - The main thread takes a new id while a beat is in flight: the beat extends the old id once, and its instant is written
 *   to memory that is no longer read.
 */

import type { Clock } from '../../core/clock.js'
import type { BeatStore } from '../../core/instances/beat-store.js'
import type { BeatingInstance, RenewedLock } from './beat-messages.js'
import { SharedInstant } from './shared-instant.js'

export interface BackupBeatsOptions {
  readonly clock: Clock
  readonly open: () => BeatStore
  /** When the main loop last turned. */
  readonly turnedAt: SharedInstant
  readonly maxBlockMs: number
  /** Called once in each block that lasts too long. */
  readonly onDead: (silentMs: number) => void
}

/** Intervals after the last beat or renewal from which the main thread counts as late. */
const LATE = 1.5
/** Intervals after which the connection is opened. */
const READY = 0.5
/** The connection is closed after this long without an instance or a lock. */
const IDLE_MS = 60_000
const DEAD_POLL_MS = 500

interface Beating {
  readonly instance: BeatingInstance
  readonly mainBeatAt: SharedInstant
  readonly threadBeatAt: SharedInstant
}

export class BackupBeats {
  readonly #options: BackupBeatsOptions
  readonly #locks = new Map<string, RenewedLock>()
  #beating: Beating | undefined
  #store: BeatStore | undefined
  #isOpen = false
  /** When an instance or a lock was last there. */
  #heldAt = 0
  /** When the next beat, renewal or connection is due. */
  #nextAt = Number.POSITIVE_INFINITY
  #reportedDead = false

  constructor(options: BackupBeatsOptions) {
    this.#options = options
  }

  setInstance(instance: BeatingInstance | undefined): void {
    this.#beating = instance && {
      instance,
      mainBeatAt: new SharedInstant(instance.mainBeatAt),
      threadBeatAt: new SharedInstant(instance.threadBeatAt),
    }
  }

  /** Returns whether its renewal is due before the next planned step. */
  hold(lock: RenewedLock): boolean {
    this.#locks.set(lock.holder, lock)
    return renewalDueAt(lock, READY) < this.#nextAt
  }

  drop(holder: string): void {
    this.#locks.delete(holder)
  }

  /** Sends overdue beats and renewals. Returns how long until the next can be overdue. */
  async catchUp(): Promise<number> {
    const now = this.#options.clock.monotonic()
    if (this.#isDead(now)) return DEAD_POLL_MS
    await this.#connect(now)
    const sent = await Promise.allSettled([this.#beat(now), this.#renew(now)])
    for (const result of sent) if (result.status === 'rejected') throw result.reason
    this.#nextAt = this.#plan()
    return Math.max(this.#nextAt - this.#options.clock.monotonic(), 1)
  }

  /** Closes the connection. The next step that needs one opens another. */
  async close(): Promise<void> {
    const store = this.#store
    this.#store = undefined
    this.#isOpen = false
    await store?.close()
  }

  /** Opens the connection before it is needed, and closes it when it has not been needed for long. */
  async #connect(now: number): Promise<void> {
    if (this.#isHolding) this.#heldAt = now
    if (this.#isOpen && now - this.#heldAt > IDLE_MS) await this.close()
    if (this.#isOpen || this.#nextDueAt(READY) > now) return
    this.#store ??= this.#options.open()
    await this.#store.open()
    this.#isOpen = true
  }

  get #isHolding(): boolean {
    return this.#beating !== undefined || this.#locks.size > 0
  }

  #isDead(now: number): boolean {
    const { turnedAt, maxBlockMs, onDead } = this.#options
    const silentMs = now - turnedAt.at
    const isDead = silentMs > maxBlockMs
    if (isDead && !this.#reportedDead && this.#isHolding) onDead(silentMs)
    this.#reportedDead = isDead
    return isDead
  }

  async #beat(now: number): Promise<void> {
    const beating = this.#beating
    if (beating === undefined || beatDueAt(beating, LATE) > now) return
    const { id, leaseMs } = beating.instance
    const { alive } = await this.#opened.beat({ instance: id, leaseMs, attempts: [], claimsSettled: 0 })
    if (alive) beating.threadBeatAt.moveTo(now)
    else if (this.#beating === beating) this.#beating = undefined
  }

  async #renew(now: number): Promise<void> {
    const due = [...this.#locks.values()].filter((lock) => renewalDueAt(lock, LATE) <= now)
    if (due.length === 0) return
    const requests = due.map(({ name, holder, token, ttlMs }) => ({ name, holder, token, ttlMs }))
    const leases = await this.#opened.renew(requests)
    for (const [at, lock] of due.entries()) {
      // The main thread extended or released it meanwhile.
      if (this.#locks.get(lock.holder) !== lock) continue
      if (leases[at] === undefined) this.#locks.delete(lock.holder)
      else this.#locks.set(lock.holder, { ...lock, sentAt: now })
    }
  }

  get #opened(): BeatStore {
    this.#store ??= this.#options.open()
    return this.#store
  }

  #plan(): number {
    if (!this.#isOpen) return this.#nextDueAt(READY)
    return this.#isHolding ? this.#nextDueAt(LATE) : this.#heldAt + IDLE_MS
  }

  #nextDueAt(intervals: number): number {
    let next = Number.POSITIVE_INFINITY
    if (this.#beating !== undefined) next = beatDueAt(this.#beating, intervals)
    for (const lock of this.#locks.values()) next = Math.min(next, renewalDueAt(lock, intervals))
    return next
  }
}

function beatDueAt({ instance, mainBeatAt, threadBeatAt }: Beating, intervals: number): number {
  return Math.max(mainBeatAt.at, threadBeatAt.at) + instance.heartbeatMs * intervals
}

function renewalDueAt({ sentAt, everyMs }: RenewedLock, intervals: number): number {
  return sentAt + everyMs * intervals
}
