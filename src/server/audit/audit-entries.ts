/**
 * How the audit trail is kept and read back. A record holds one entry, or several that were written together; the place of an
 * entry is the id of its record, and its number within it where there are several. What one caller did to many, one right
 * after the other, is said once.
 */
import type { Json } from '../../core/json.js'
import type { StoredRecord } from '../../core/record.js'
import type { Page, RecordStore } from '../../core/store.js'

export const AUDIT_KIND = 'audit'

/** Who did what. */
export interface AuditDeed {
  readonly caller: string
  readonly role: string
  readonly action: string
  readonly detail?: Json
}

export interface AuditBody extends AuditDeed {
  readonly target: string
}

/** The same, done to one or more. */
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
  /** Only what was done to ids that begin with this. */
  readonly prefix?: string
}

/** How many entries one call looks through at the most. */
const MAX_LOOKED_THROUGH = 1_000
/** How many records it reads first; then twice as many each time, because each may hold many entries. */
const FIRST_RECORDS = 4
const NUMBERED = /^(.+)\.(\d{1,4})$/

/** Newest first. A page may be short, or empty, and still have a next one: only `next` says that there is more. */
export async function listEntries(
  records: RecordStore,
  { after, limit, prefix = '' }: AuditQuery,
): Promise<Page<AuditEntry>> {
  const found: AuditEntry[] = []
  const [, record = after, number] = NUMBERED.exec(after ?? '') ?? []
  // Of the record in which the page before ended, the rest is still to come.
  const isAhead = ({ id }: AuditEntry) => number === undefined || !id.startsWith(`${record}.`) || numberOf(id) < +number
  let from = number === undefined ? record : `${record}~`
  for (let [looked, most] = [0, FIRST_RECORDS]; looked < MAX_LOOKED_THROUGH; most *= 2) {
    const page = await records.list({
      ...{ kind: AUDIT_KIND, limit: Math.min(limit - found.length, most), backwards: true },
      ...(from === undefined ? {} : { after: from }),
    })
    const entries = page.items.flatMap(entriesOf)
    looked += Math.max(entries.length, 1)
    for (const [at, entry] of entries.entries()) {
      if (entry.target.startsWith(prefix) && isAhead(entry)) found.push(entry)
      const isLast = page.next === undefined && at === entries.length - 1
      if (found.length === limit) return isLast ? { items: found } : { items: found, next: entry.id }
    }
    if (page.next === undefined) return { items: found }
    from = page.next
  }
  return from === undefined ? { items: found } : { items: found, next: from }
}

/** As a record keeps them. */
export function toAuditRecord(groups: readonly AuditGroup[]): Json {
  const [only] = groups
  const isAlone = groups.length === 1 && only?.targets.length === 1
  return (isAlone ? entryBodies(only)[0] : groups) as unknown as Json
}

/** Newest first. */
function entriesOf({ id, body, writtenAt }: StoredRecord): readonly AuditEntry[] {
  if (!Array.isArray(body)) return [{ id, at: writtenAt, ...(body as unknown as AuditBody) }]
  const bodies = (body as unknown as readonly (AuditBody | AuditGroup)[]).flatMap(entryBodies)
  return bodies.map((each, at) => ({ id: `${id}.${at}`, at: writtenAt, ...each })).reverse()
}

/** One by one. */
export function entryBodies(kept: AuditBody | AuditGroup): readonly AuditBody[] {
  if ('target' in kept) return [kept]
  const { targets, detail, ...deed } = kept
  return targets.map((target) => ({ ...deed, target, ...(detail === undefined ? {} : { detail }) }))
}

function numberOf(id: string): number {
  return Number(NUMBERED.exec(id)?.[2])
}
