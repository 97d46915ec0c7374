/**
 * Who changed what, when: small records that grow with the store's time and are forgotten after ninety days.
 *
 * A change that was made is answered as made, whether or not it could be written down: an error here would make callers
 * repeat what has happened. So the write is tried a few times, and what cannot be kept goes to the log instead.
 *
 * Ids begin with the store's time, which no process knows by itself: the first write asks by writing down a trifle, and
 * every answer after that says it anew.
 */
import { randomBytes } from 'node:crypto'
import type { Belfry } from '../belfry.js'
import { type Clock, sleep, systemClock } from '../core/clock.js'
import { errorRecord } from '../core/errors.js'
import type { Json } from '../core/json.js'
import { type Logger, silentLogger } from '../core/logger.js'
import type { StoredRecord } from '../core/record.js'
import type { Page, RecordStore } from '../core/store.js'
import type { Audit, Caller } from './caller.js'
import { redacted } from './redacted.js'
import type { ParsedServerOptions } from './server-options.js'

export interface AuditEntry {
  readonly id: string
  readonly at: number
  readonly caller: string
  readonly role: string
  readonly action: string
  readonly target: string
  readonly detail?: Json
}

export interface AuditQuery {
  readonly after?: string
  readonly limit: number
  /** Only what was done to ids that begin with this. */
  readonly prefix?: string
}

const KIND = 'audit'
const KEPT_MS = 90 * 24 * 3_600_000
const TRIES = 3
const RETRY_MS = 100
const MAX_DETAIL = 4_096
/** How many records one call looks through at the most. */
const MAX_LOOKED_THROUGH = 1_000

export class AuditTrail {
  readonly #records: RecordStore
  readonly #clock: Clock
  readonly #log: Logger
  /** How far the store's clock is ahead of our monotonic one. */
  #aheadMs: number | undefined
  #lastMs = 0
  #inThisMs = 0

  constructor(records: RecordStore, log: Logger = silentLogger, clock: Clock = systemClock) {
    this.#records = records
    this.#clock = clock
    this.#log = log
  }

  /** Never throws. */
  async write(caller: Pick<Caller, 'name' | 'role'>, action: string, target: string, detail?: Json): Promise<void> {
    const body = {
      ...{ caller: caller.name, role: caller.role, action, target: target.slice(0, 1_000) },
      ...(detail === undefined ? {} : { detail: bounded(redacted(detail)) }),
    }
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { record } = await this.#records.put({ kind: KIND, id: await this.#nextId(), body, ttlMs: KEPT_MS })
        this.#learn(record)
        return
      } catch (error) {
        if (attempt === TRIES) {
          this.#log.error({ audit: body, err: errorRecord(error) }, 'a change could not be written down for the audit')
          return
        }
        await sleep(this.#clock, RETRY_MS * attempt)
      }
    }
  }

  /** Newest first. A page may be short, or empty, and still have a next one: only `next` says that there is more. */
  async list({ after, limit, prefix }: AuditQuery): Promise<Page<AuditEntry>> {
    const found: AuditEntry[] = []
    let from = after
    for (let looked = 0; looked < MAX_LOOKED_THROUGH; ) {
      const page = await this.#records.list({
        ...{ kind: KIND, limit: limit - found.length, backwards: true },
        ...(from === undefined ? {} : { after: from }),
      })
      looked += Math.max(page.items.length, 1)
      found.push(...page.items.map(entryOf).filter(({ target }) => target.startsWith(prefix ?? '')))
      if (page.next === undefined) return { items: found }
      from = page.next
      if (found.length >= limit) break
    }
    return from === undefined ? { items: found } : { items: found, next: from }
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
    return `${String(ms).padStart(15, '0')}-${counted}-${randomBytes(4).toString('hex')}`
  }

  #learn({ writtenAt }: StoredRecord): void {
    this.#aheadMs = writtenAt - this.#clock.monotonic()
  }
}

/** What routes call after a change. */
export function auditTrail(
  belfry: Pick<Belfry, 'records'>,
  options: Pick<ParsedServerOptions, 'audit' | 'log'>,
): Audit {
  if (!options.audit) return async () => {}
  const trail = new AuditTrail(belfry.records, options.log)
  return (caller, action, target, detail) => trail.write(caller, action, target, detail)
}

function entryOf({ id, body, writtenAt }: StoredRecord): AuditEntry {
  const { caller, role, action, target, detail } = body as unknown as Omit<AuditEntry, 'id' | 'at'>
  return { id, at: writtenAt, caller, role, action, target, ...(detail === undefined ? {} : { detail }) }
}

function bounded(detail: Json): Json {
  const text = JSON.stringify(detail)
  return text.length <= MAX_DETAIL ? detail : { cut: text.slice(0, MAX_DETAIL) }
}
