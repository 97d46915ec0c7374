/**
 * Who changed what, when: small records that grow with the store's time and are forgotten after ninety days.
 *
 * A change that was made is answered as made, whether or not it could be written down: an error here would make callers
 * repeat what has happened. So the write is tried a few times, and what cannot be kept goes to the log instead. Nor does the
 * answer wait for it: the change is in the store by then, and a process that is killed in between leaves it without its entry
 * either way. Whoever lists, or closes, waits until all of it is kept. A change that comes alone is written at once; those
 * that come within a moment after it share a record.
 *
 * Ids begin with the store's time, which no process knows by itself: the first write asks by writing down a trifle, and
 * every answer after that says it anew.
 */
import { randomBytes } from 'node:crypto'
import { type Clock, sleep, systemClock } from '../core/clock.js'
import { errorRecord } from '../core/errors.js'
import type { Json } from '../core/json.js'
import { type Logger, silentLogger } from '../core/logger.js'
import type { Mutable } from '../core/mutable.js'
import type { StoredRecord } from '../core/record.js'
import type { Page, RecordStore } from '../core/store.js'
import { AUDIT_KIND, type AuditBody, type AuditEntry, type AuditQuery, listEntries } from './audit-entries.js'
import type { Caller } from './caller.js'
import { redacted } from './redacted.js'

const KEPT_MS = 90 * 24 * 3_600_000
const TRIES = 3
const RETRY_MS = 100
const MAX_DETAIL = 4_096
/** How many entries share a record at the most, of how many characters, and how long it waits after one for more to come. */
const MOST_TOGETHER = 500
const MOST_CHARACTERS = 64_000
/** What every entry takes besides its target and its detail. */
const ENTRY_CHARACTERS = 100
const PAUSE_MS = 25
/** How many may be noted and not kept yet. */
const MOST_UNKEPT = 1_000

interface Waiting {
  readonly body: AuditBody
  /** About how many characters it takes to write it down. */
  readonly length: number
}

interface Awaiting {
  /** How many have to be kept. */
  readonly upTo: number
  readonly done: () => void
}

type AuditArguments = readonly [caller: Pick<Caller, 'name' | 'role'>, action: string, target: string, detail?: Json]

export class AuditTrail {
  readonly #records: RecordStore
  readonly #clock: Clock
  readonly #log: Logger
  /** How far the store's clock is ahead of our monotonic one. */
  #aheadMs: number | undefined
  readonly #waiting: Waiting[] = []
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

  #note(caller: Pick<Caller, 'name' | 'role'>, action: string, target: string, detail?: Json): void {
    const body: Mutable<AuditBody> = { caller: caller.name, role: caller.role, action, target: target.slice(0, 1_000) }
    let length = ENTRY_CHARACTERS + body.target.length
    if (detail !== undefined) {
      const { kept, length: own } = bounded(redacted(detail))
      body.detail = kept
      length += own
    }
    this.#waiting.push({ body, length })
    this.#noted += 1
    if (!this.#isWriting) void this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      const together = this.#waiting.splice(0, this.#fitting())
      await this.#keep(together.map(({ body }) => body))
      this.#kept += together.length
      for (const { upTo, done } of this.#awaiting) if (upTo <= this.#kept) done()
      this.#awaiting = this.#awaiting.filter(({ upTo }) => upTo > this.#kept)
      if (this.#awaiting.length === 0 && this.#waiting.length < MOST_TOGETHER) await this.#pause()
    }
    this.#isWriting = false
  }

  /** How many of those that wait fit into a record. */
  #fitting(): number {
    let [count, characters] = [0, 0]
    for (const { length } of this.#waiting) {
      characters += length
      if (count > 0 && (count >= MOST_TOGETHER || characters > MOST_CHARACTERS)) break
      count += 1
    }
    return count
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
  async #keep(bodies: readonly AuditBody[]): Promise<void> {
    const [only] = bodies
    const body = (bodies.length === 1 ? only : bodies) as unknown as Json
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { record } = await this.#records.put({ kind: AUDIT_KIND, id: await this.#nextId(), body, ttlMs: KEPT_MS })
        return this.#learn(record)
      } catch (error) {
        if (attempt === TRIES) {
          const err = errorRecord(error)
          for (const audit of bodies) {
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

/** What is kept of a detail, and about how long it is when it is written down. */
function bounded(detail: Json): { readonly kept: Json; readonly length: number } {
  const text = JSON.stringify(detail)
  const kept = text.length <= MAX_DETAIL ? detail : { cut: text.slice(0, MAX_DETAIL) }
  return { kept, length: Math.min(text.length, MAX_DETAIL) }
}
