import type { Json } from '../../../core/checks/json.js'
import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { checkRecordName, type RecordQuery, type RecordWrite, type StoredRecord } from '../../../core/records/record.js'
import type { Page, RecordPutResult } from '../../../core/store.js'
import { statement } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import source from './records.sql'

type Name = { kind: string; id: string }
type Range = { kind: string; after: string; now: number; limit: number }

interface RecordRow {
  readonly kind: string
  readonly id: string
  /** JSON. */
  readonly body: string
  readonly written_at: number
  readonly expires_at: number | null
}

const putStatement = statement<Name & { body: string; now: number; expiresAt: number | null }>(source, 'putRecord')
const getStatement = statement<Name & { now: number }, RecordRow>(source, 'getRecord')
const listStatement = statement<Range, RecordRow>(source, 'listRecords')
const listBackwards = statement<Range, RecordRow>(source, 'listRecordsBackwards')
const removeStatement = statement<Name & { now: number }>(source, 'removeRecord')

export function putRecord(tx: Tx, { kind, id, body, ttlMs, ifAbsent }: RecordWrite): RecordPutResult {
  const { db, now } = tx
  checkRecordName(kind, 'kind')
  checkRecordName(id, 'id')
  const known = ifAbsent ? getRecord(tx, kind, id) : undefined
  if (known !== undefined) return { written: false, record: known }
  const expiresAt = ttlMs === undefined ? null : now + Math.ceil(ttlMs)
  const text = JSON.stringify(body)
  db.run(putStatement, { kind, id, body: text, now, expiresAt })
  return { written: true, record: toRecord({ kind, id, body: text, written_at: now, expires_at: expiresAt }) }
}

export function getRecord({ db, now }: Snapshot, kind: string, id: string): StoredRecord | undefined {
  const row = db.get(getStatement, { kind, id, now })
  return row === undefined ? undefined : toRecord(row)
}

/** Sorts after every id: ids are printable ASCII of at most 255 characters. */
const END = '~'.repeat(256)

export function listRecords({ db, now }: Snapshot, query: RecordQuery): Page<StoredRecord> {
  const { kind, limit, backwards = false, after = backwards ? END : '' } = query
  checkPageLimit(limit)
  const rows = db.all(backwards ? listBackwards : listStatement, { kind, after, now, limit: limit + 1 })
  const items = rows.slice(0, limit).map(toRecord)
  const last = items.at(-1)
  return rows.length > limit && last !== undefined ? { items, next: last.id } : { items }
}

export function removeRecord({ db, now }: Tx, kind: string, id: string): boolean {
  return db.run(removeStatement, { kind, id, now }) > 0
}

function toRecord({ kind, id, body, written_at, expires_at }: RecordRow): StoredRecord {
  const record = { kind, id, body: JSON.parse(body) as Json, writtenAt: written_at }
  return expires_at === null ? record : { ...record, expiresAt: expires_at }
}
