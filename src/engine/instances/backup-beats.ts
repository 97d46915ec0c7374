/**
 * Beats and renewals for a main thread that is late with its own. It runs in the beat thread: while the main loop turns,
 * nothing is sent from here. The connection is made before it is needed, when an instance or a lock has been held for
 * half an interval; for locks that are given back sooner, as most are, none is made.
 *
 * A beat from here extends the instance's lease and judges nothing: it says that no claim was answered, so the store gives
 * no run back. What the store has to tell (runs that were lost or cancelled, that the instance was declared dead) the main
 * thread hears with its own next beat.
 *
 * - The main loop blocks: its beat is overdue by half an interval, and one is sent from here, until it turns again.
 * - The main loop is silent for longer than `maxBlock`: the process counts as dead, and nothing more is sent for it.
 * - The whole process is stopped: both threads are, and the lease runs out as it should.
 * - The store declared the instance dead, or gave a lock to another: it is forgotten here.
 * - A beat that is in flight while the main thread takes a new identity: it extends the old one once, and is written to
 *   memory that nobody reads any more.
 */
import type { BeatStore } from '../../core/beat-store.js'
import type { Clock } from '../../core/clock.js'
import type { Life, RenewedLock } from './beat-messages.js'
import { SharedInstant } from './shared-instant.js'

export interface BackupBeatsOptions {
  readonly clock: Clock
  readonly open: () => BeatStore
  /** When the main loop last turned. */
  readonly turnedAt: SharedInstant
  readonly maxBlockMs: number
  /** Told once in each block that lasts too long. */
  readonly onDead: (silentMs: number) => void
}

/** How many intervals after the last beat, or renewal, the main thread counts as late. */
const LATE = 1.5
/** And after how many it is sure to have a connection to send another over. */
const READY = 0.5
/** A connection is closed when nothing has been held for so long. */
const IDLE_MS = 60_000
const DEAD_POLL_MS = 500

interface Beating {
  readonly life: Life
  readonly mainBeatAt: SharedInstant
  readonly threadBeatAt: SharedInstant
}

export class BackupBeats {
  readonly #options: BackupBeatsOptions
  readonly #locks = new Map<string, RenewedLock>()
  #beating: Beating | undefined
  #store: BeatStore | undefined
  #isOpen = false
  /** When something was last held. */
  #heldAt = 0
  /** When the next thing is to be done. */
  #nextAt = Number.POSITIVE_INFINITY
  #saidDead = false

  constructor(options: BackupBeatsOptions) {
    this.#options = options
  }

  live(life: Life | undefined): void {
    this.#beating = life && {
      life,
      mainBeatAt: new SharedInstant(life.mainBeatAt),
      threadBeatAt: new SharedInstant(life.threadBeatAt),
    }
  }

  /** Answers whether something is to be done for it sooner than was planned. */
  hold(lock: RenewedLock): boolean {
    this.#locks.set(lock.holder, lock)
    return renewalDueAt(lock, READY) < this.#nextAt
  }

  drop(holder: string): void {
    this.#locks.delete(holder)
  }

  /** Sends what is overdue. Answers how long nothing more can be. */
  async catchUp(): Promise<number> {
    const now = this.#options.clock.monotonic()
    if (this.#isDead(now)) return DEAD_POLL_MS
    await this.#connect(now)
    const sent = await Promise.allSettled([this.#beat(now), this.#renew(now)])
    for (const result of sent) if (result.status === 'rejected') throw result.reason
    this.#nextAt = this.#plan()
    return Math.max(this.#nextAt - this.#options.clock.monotonic(), 1)
  }

  /** Closes the connection; the next that is needed is another. */
  async close(): Promise<void> {
    const store = this.#store
    this.#store = undefined
    this.#isOpen = false
    await store?.close()
  }

  /** Opens a connection in good time, and closes it when it has not been needed for long. */
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
    if (isDead && !this.#saidDead && this.#isHolding) onDead(silentMs)
    this.#saidDead = isDead
    return isDead
  }

  async #beat(now: number): Promise<void> {
    const beating = this.#beating
    if (beating === undefined || beatDueAt(beating, LATE) > now) return
    const { instance, leaseMs } = beating.life
    const { alive } = await this.#opened.beat({ instance, leaseMs, attempts: [], claimsSettled: 0 })
    if (alive) beating.threadBeatAt.moveTo(now)
    else if (this.#beating === beating) this.#beating = undefined
  }

  async #renew(now: number): Promise<void> {
    const due = [...this.#locks.values()].filter((lock) => renewalDueAt(lock, LATE) <= now)
    if (due.length === 0) return
    const requests = due.map(({ name, holder, token, ttlMs }) => ({ name, holder, token, ttlMs }))
    const leases = await this.#opened.renew(requests)
    for (const [at, lock] of due.entries()) {
      // It was extended or given back meanwhile.
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

function beatDueAt({ life, mainBeatAt, threadBeatAt }: Beating, intervals: number): number {
  return Math.max(mainBeatAt.at, threadBeatAt.at) + life.heartbeatMs * intervals
}

function renewalDueAt({ sentAt, everyMs }: RenewedLock, intervals: number): number {
  return sentAt + everyMs * intervals
}
