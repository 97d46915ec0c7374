/**
 * The audit trail: who changed what, when. Entries are records whose ids grow with the store's time; they expire after
 * ninety days.
 *
 * A failed audit write does not fail the request: the change is already stored, and an error would make the caller repeat it.
 * The trail tries the write three times, and then writes the entry to the log instead. Responses do not wait for the audit
 * write. Waiting would protect nothing: a process killed between the change and its audit write loses the entry either way.
 * `list` and `settled` wait until all entries are stored.
 *
 * A single change is written at once. Changes within the next 25 ms share a record, and those that differ only in their target
 * share one group in it.
 *
 * Ids begin with the estimated store clock: this process's monotonic clock plus an offset. The reply to a first, empty write
 * sets the offset, and the reply to every later write corrects it.
 */
import { randomBytes } from 'node:crypto'
import { type Clock, sleep, systemClock } from '../../core/clock.js'
import { errorRecord } from '../../core/errors.js'
import { type Logger, silentLogger } from '../../core/logger.js'
import type { StoredRecord } from '../../core/records/record.js'
import type { Page, RecordStore } from '../../core/store.js'
import { type AuditArguments, AuditBacklog, MOST_TOGETHER } from './audit-backlog.js'
import {
  AUDIT_KIND,
  type AuditEntry,
  type AuditGroup,
  type AuditQuery,
  entryBodies,
  listEntries,
  toAuditRecord,
} from './audit-entries.js'

const KEPT_MS = 90 * 24 * 3_600_000
const TRIES = 3
const RETRY_MS = 100
/** The pause after each record, so that entries that arrive meanwhile share the next record. */
const PAUSE_MS = 25
/** With more unstored entries than this, `note` waits (backpressure). */
const MOST_UNSTORED = 1_000

interface Awaiting {
  /** `done` is called once this many entries are stored. */
  readonly upTo: number
  readonly done: () => void
}

export class AuditTrail {
  readonly #records: RecordStore
  readonly #clock: Clock
  readonly #log: Logger
  /** The store's clock minus this process's monotonic clock. */
  #aheadMs: number | undefined
  readonly #backlog = new AuditBacklog()
  #awaiting: Awaiting[] = []
  #noted = 0
  #stored = 0
  #isWriting = false
  #endPause = () => {}
  /** Makes the ids of this process unique among all processes. */
  readonly #mark = randomBytes(4).toString('hex')
  #lastMs = 0
  #inThisMs = 0

  constructor(records: RecordStore, log: Logger = silentLogger, clock: Clock = systemClock) {
    this.#records = records
    this.#clock = clock
    this.#log = log
  }

  /** Resolves when the entry is stored. Never throws. */
  write(...entry: AuditArguments): Promise<void> {
    this.#note(...entry)
    return this.settled()
  }

  /** Stores the entry in the background. Waits only while too many entries are unstored. */
  async note(...entry: AuditArguments): Promise<void> {
    this.#note(...entry)
    if (this.#noted - this.#stored > MOST_UNSTORED) await this.settled()
  }

  /** Resolves when all entries so far are stored. */
  settled(): Promise<void> {
    if (this.#stored === this.#noted) return Promise.resolve()
    return new Promise((resolve) => {
      this.#awaiting.push({ upTo: this.#noted, done: resolve })
      this.#endPause()
    })
  }

  async list(query: AuditQuery): Promise<Page<AuditEntry>> {
    await this.settled()
    return listEntries(this.#records, query)
  }

  #note(...entry: AuditArguments): void {
    this.#backlog.add(...entry)
    this.#noted += 1
    if (!this.#isWriting) void this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true
    while (!this.#backlog.isEmpty) {
      const together = this.#backlog.take()
      await this.#store(together)
      for (const { targets } of together) this.#stored += targets.length
      for (const { upTo, done } of this.#awaiting) if (upTo <= this.#stored) done()
      this.#awaiting = this.#awaiting.filter(({ upTo }) => upTo > this.#stored)
      if (this.#awaiting.length === 0 && this.#noted - this.#stored < MOST_TOGETHER) await this.#pause()
    }
    this.#isWriting = false
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(PAUSE_MS, resolve)
      this.#endPause = () => {
        cancel()
        resolve()
      }
    })
  }

  /** Never throws: entries that cannot be stored go to the log. */
  async #store(groups: readonly AuditGroup[]): Promise<void> {
    const body = toAuditRecord(groups)
    // All tries use the same id, so that a retry after a lost reply overwrites the record instead of duplicating it.
    let id: string | undefined
    for (let attempt = 1; ; attempt += 1) {
      try {
        id ??= await this.#nextId()
        const { record } = await this.#records.put({ kind: AUDIT_KIND, id, body, ttlMs: KEPT_MS })
        return this.#learnTime(record)
      } catch (error) {
        if (attempt === TRIES) {
          const err = errorRecord(error)
          for (const audit of groups.flatMap(entryBodies)) {
            this.#log.error({ audit, err }, 'an audit entry could not be stored')
          }
          return
        }
        await sleep(this.#clock, RETRY_MS * attempt)
      }
    }
  }

  async #nextId(): Promise<string> {
    if (this.#aheadMs === undefined) {
      const empty = { kind: 'audit-time', id: 'now', body: null, ttlMs: 60_000 }
      this.#learnTime((await this.#records.put(empty)).record)
    }
    const ms = Math.max(Math.floor(this.#clock.monotonic() + (this.#aheadMs ?? 0)), this.#lastMs)
    this.#inThisMs = ms === this.#lastMs ? this.#inThisMs + 1 : 0
    this.#lastMs = ms
    const number = String(this.#inThisMs).padStart(5, '0')
    return `${String(ms).padStart(15, '0')}-${number}-${this.#mark}`
  }

  #learnTime({ writtenAt }: StoredRecord): void {
    this.#aheadMs = writtenAt - this.#clock.monotonic()
  }
}
