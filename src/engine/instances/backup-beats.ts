/**
 * Sends beats and renewals when the main thread is late with its own. This code runs in the beat thread; while the main
 * loop turns, it sends nothing. It connects to the store half an interval after an instance has joined or a lock was
 * acquired, so that the connection is open when it is needed. Most locks are released earlier and need no connection.
 *
 * A beat of this thread only extends the instance's lease. It reports no answered claim (`claimsSettled: 0`), so the
 * store makes no run ready again. The main thread's own next beat returns which runs were lost or cancelled, and
 * whether the instance was declared dead.
 *
 * What it survives:
 * - The main loop is blocked: when its beat is half an interval late, this thread sends one, until the loop turns
 *   again.
 * - The main loop is blocked for longer than `maxBlock`: the process counts as dead, and nothing more is sent.
 * - The whole process is stopped: neither thread sends beats, and the lease expires as it should.
 * - The store declared the instance dead, or another holder has a lock: this thread stops sending for it.
 * - The main thread takes a new id while a beat is in flight: the beat extends the old id's lease once more, and its
 *   instant goes to memory that no thread reads any more.
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
  /** Called once in each block in which this thread sends beats. `locks` are the names of those that it renews. */
  readonly onBlocked: (silentMs: number, locks: readonly string[]) => void
  /** Called once in each block that lasts too long. */
  readonly onDead: (silentMs: number, locks: readonly string[]) => void
}

/** The main thread counts as late this many intervals after its last beat or renewal. */
const LATE = 1.5
/** The connection is opened this many intervals after the last beat or renewal. */
const READY = 0.5
/** The connection is closed after this long without an instance or a lock. */
const IDLE_MS = 60_000
const DEAD_POLL_MS = 500
/** The main loop turns every half a second, so a longer silence is a block. */
const BLOCK_MS = 2_000

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
  /** When this thread last had an instance or a lock to keep alive. */
  #heldAt = 0
  /** When the next beat, renewal or connection is due. */
  #nextAt = Number.POSITIVE_INFINITY
  #reportedDead = false
  #reportedBlock = false

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

  /** Returns whether the lock's renewal is due before the next planned step. */
  hold(lock: RenewedLock): boolean {
    this.#locks.set(lock.holder, lock)
    return renewalDueAt(lock, READY) < this.#nextAt
  }

  drop(holder: string): void {
    this.#locks.delete(holder)
  }

  /** Sends overdue beats and renewals. Returns how long to wait until the next one can be overdue. */
  async catchUp(): Promise<number> {
    const now = this.#options.clock.monotonic()
    if (this.#isDead(now)) return DEAD_POLL_MS
    this.#reportBlock(now)
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
    if (isDead && !this.#reportedDead && this.#isHolding) onDead(silentMs, this.#lockNames)
    this.#reportedDead = isDead
    return isDead
  }

  #reportBlock(now: number): void {
    const { turnedAt, onBlocked } = this.#options
    const silentMs = now - turnedAt.at
    const isBlocked = silentMs > BLOCK_MS && this.#nextDueAt(LATE) <= now
    if (isBlocked && !this.#reportedBlock) onBlocked(silentMs, this.#lockNames)
    this.#reportedBlock = isBlocked || (this.#reportedBlock && silentMs > BLOCK_MS)
  }

  get #lockNames(): readonly string[] {
    return [...this.#locks.values()].map(({ name }) => name)
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
      // The main thread has extended or released this lock meanwhile.
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
