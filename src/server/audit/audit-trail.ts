/**
 * Who changed what, when: small records that grow with the store's time and are forgotten after ninety days.
 *
 * A change that was made is answered as made, whether or not it could be written down: an error here would make callers
 * repeat what has happened. So the write is tried a few times, and what cannot be kept goes to the log instead. Nor does the
 * answer wait for it: the change is in the store by then, and a process that is killed in between leaves it without its entry
 * either way. Whoever lists, or closes, waits until all of it is kept. A change that comes alone is written at once; those
 * that come within a moment after it share a record, and what is the same but for its target is said once in it.
 *
 * Ids begin with the store's time, which no process knows by itself: the first write asks by writing down a trifle, and
 * every answer after that says it anew.
 */
import { randomBytes } from 'node:crypto'
import { type Clock, sleep, systemClock } from '../../core/clock.js'
import { errorRecord } from '../../core/errors.js'
import { type Logger, silentLogger } from '../../core/logger.js'
import type { StoredRecord } from '../../core/record.js'
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
/** How long the trail waits after a record for more to come. */
const PAUSE_MS = 25
/** How many may be noted and not kept yet. */
const MOST_UNKEPT = 1_000

interface Awaiting {
  /** How many have to be kept. */
  readonly upTo: number
  readonly done: () => void
}

export class AuditTrail {
  readonly #records: RecordStore
  readonly #clock: Clock
  readonly #log: Logger
  /** How far the store's clock is ahead of our monotonic one. */
  #aheadMs: number | undefined
  readonly #backlog = new AuditBacklog()
  #awaiting: Awaiting[] = []
  #noted = 0
  #kept = 0
  #isWriting = false
  #endPause = () => {}
  /** Tells the ids of this process from those of others. */
  readonly #mark = randomBytes(4).toString('hex')
  #lastMs = 0
  #inThisMs = 0

  constructor(records: RecordStore, log: Logger = silentLogger, clock: Clock = systemClock) {
    this.#records = records
    this.#clock = clock
    this.#log = log
  }

  /** Resolves when it is kept. Never throws. */
  write(...entry: AuditArguments): Promise<void> {
    this.#note(...entry)
    return this.settled()
  }

  /** Writes behind whoever goes on meanwhile, unless there are many to be written already. */
  async note(...entry: AuditArguments): Promise<void> {
    this.#note(...entry)
    if (this.#noted - this.#kept > MOST_UNKEPT) await this.settled()
  }

  /** Resolves when all that was noted so far is kept. */
  settled(): Promise<void> {
    if (this.#kept === this.#noted) return Promise.resolve()
    return new Promise((resolve) => {
      this.#awaiting.push({ upTo: this.#noted, done: resolve })
      this.#endPause()
    })
  }

  /** Newest first. A page may be short, or empty, and still have a next one: only `next` says that there is more. */
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
      await this.#keep(together)
      for (const { targets } of together) this.#kept += targets.length
      for (const { upTo, done } of this.#awaiting) if (upTo <= this.#kept) done()
      this.#awaiting = this.#awaiting.filter(({ upTo }) => upTo > this.#kept)
      if (this.#awaiting.length === 0 && this.#noted - this.#kept < MOST_TOGETHER) await this.#pause()
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

  /** Never throws. */
  async #keep(groups: readonly AuditGroup[]): Promise<void> {
    const body = toAuditRecord(groups)
    // The same for all tries: one whose answer was lost may have been written.
    let id: string | undefined
    for (let attempt = 1; ; attempt += 1) {
      try {
        id ??= await this.#nextId()
        const { record } = await this.#records.put({ kind: AUDIT_KIND, id, body, ttlMs: KEPT_MS })
        return this.#learn(record)
      } catch (error) {
        if (attempt === TRIES) {
          const err = errorRecord(error)
          for (const audit of groups.flatMap(entryBodies)) {
            this.#log.error({ audit, err }, 'a change could not be written down for the audit')
          }
          return
        }
        await sleep(this.#clock, RETRY_MS * attempt)
      }
    }
  }

  async #nextId(): Promise<string> {
    if (this.#aheadMs === undefined) {
      const trifle = { kind: 'audit-time', id: 'now', body: null, ttlMs: 60_000 }
      this.#learn((await this.#records.put(trifle)).record)
    }
    const ms = Math.max(Math.floor(this.#clock.monotonic() + (this.#aheadMs ?? 0)), this.#lastMs)
    this.#inThisMs = ms === this.#lastMs ? this.#inThisMs + 1 : 0
    this.#lastMs = ms
    const counted = String(this.#inThisMs).padStart(5, '0')
    return `${String(ms).padStart(15, '0')}-${counted}-${this.#mark}`
  }

  #learn({ writtenAt }: StoredRecord): void {
    this.#aheadMs = writtenAt - this.#clock.monotonic()
  }
}
