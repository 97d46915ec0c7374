/**
 * The stored format of the audit trail. A record's body is one entry, or a list of entries and groups that were written
 * together; a group is one action on several targets. An entry's id is its record's id, plus its number in a list:
 *
 *     record r1: { caller, role, action, target: "a" }                     entry r1
 *     record r2: [{ caller, role, action, targets: ["b", "c"] }, { … }]    entries r2.0 (b), r2.1 (c), r2.2
 */
import type { Json } from '../../core/checks/json.js'
import type { StoredRecord } from '../../core/records/record.js'
import type { Page, RecordStore } from '../../core/store.js'
import { redacted } from '../security/redacted.js'

export const AUDIT_KIND = 'audit'

/** The caller and its action, without the target. */
export interface AuditDeed {
  readonly caller: string
  readonly role: string
  /** The prefix that the caller was limited to. */
  readonly prefix?: string
  readonly action: string
  readonly detail?: Json
}

export interface AuditBody extends AuditDeed {
  readonly target: string
}

/** One action on one or more targets. */
export interface AuditGroup extends AuditDeed {
  readonly targets: readonly string[]
}

export interface AuditEntry extends AuditBody {
  readonly id: string
  readonly at: number
}

export interface AuditQuery {
  readonly after?: string
  readonly limit: number
  /** Default: all entries. */
  readonly isWanted?: (entry: AuditEntry) => boolean
}

/** One call reads at most about this many entries. */
const MAX_READ = 1_000
/** The first read takes few records, because each may hold many entries; every further read takes twice as many. */
const FIRST_RECORDS = 4
const MAX_DETAIL = 4_096
const NUMBERED = /^(.+)\.(\d{1,4})$/

/** Lists entries, newest first. A page may be short or empty although more follow: only a page without `next` is the last. */
export async function listEntries(
  records: RecordStore,
  { after, limit, isWanted = () => true }: AuditQuery,
): Promise<Page<AuditEntry>> {
  const found: AuditEntry[] = []
  const [, record = after, number] = NUMBERED.exec(after ?? '') ?? []
  // The previous page may have ended inside a record, whose older entries are still to come.
  const isAhead = ({ id }: AuditEntry) => number === undefined || !id.startsWith(`${record}.`) || numberOf(id) < +number
  let from = number === undefined ? record : `${record}~`
  for (let [read, most] = [0, FIRST_RECORDS]; read < MAX_READ; most *= 2) {
    const page = await records.list({
      ...{ kind: AUDIT_KIND, limit: Math.min(limit - found.length, most), backwards: true },
      ...(from === undefined ? {} : { after: from }),
    })
    const entries = page.items.flatMap(entriesOf)
    read += Math.max(entries.length, 1)
    for (const [at, entry] of entries.entries()) {
      if (isAhead(entry) && isWanted(entry)) found.push(entry)
      const isLast = page.next === undefined && at === entries.length - 1
      if (found.length === limit) return isLast ? { items: found } : { items: found, next: entry.id }
    }
    if (page.next === undefined) return { items: found }
    from = page.next
  }
  return from === undefined ? { items: found } : { items: found, next: from }
}

/** Returns the stored form of a detail (redacted, and cut if it is too long) and its length in characters. */
export function toDetail(given: Json): { readonly detail: Json; readonly length: number } {
  const whole = redacted(given)
  const text = JSON.stringify(whole)
  const detail = text.length <= MAX_DETAIL ? whole : { cut: text.slice(0, MAX_DETAIL) }
  return { detail, length: Math.min(text.length, MAX_DETAIL) }
}

/** A record of a single entry holds the entry itself; every other record holds a list. */
export function toAuditRecord(groups: readonly AuditGroup[]): Json {
  const [only] = groups
  const isAlone = groups.length === 1 && only?.targets.length === 1
  return (isAlone ? entryBodies(only)[0] : groups) as unknown as Json
}

/** The entries of a record, newest first. */
function entriesOf({ id, body, writtenAt }: StoredRecord): readonly AuditEntry[] {
  if (!Array.isArray(body)) return [{ id, at: writtenAt, ...(body as unknown as AuditBody) }]
  const bodies = (body as unknown as readonly (AuditBody | AuditGroup)[]).flatMap(entryBodies)
  return bodies.map((each, at) => ({ id: `${id}.${at}`, at: writtenAt, ...each })).reverse()
}

/** A group as one entry for each target. */
export function entryBodies(kept: AuditBody | AuditGroup): readonly AuditBody[] {
  if ('target' in kept) return [kept]
  const { targets, detail, ...deed } = kept
  return targets.map((target) => ({ ...deed, target, ...(detail === undefined ? {} : { detail }) }))
}

function numberOf(id: string): number {
  return Number(NUMBERED.exec(id)?.[2])
}
