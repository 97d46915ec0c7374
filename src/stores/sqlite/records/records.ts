import type { Json } from '../../../core/checks/json.js'
import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { checkRecordName, type RecordQuery, type RecordWrite, type StoredRecord } from '../../../core/records/record.js'
import type { Page, RecordPutResult } from '../../../core/store.js'
import { change, row, rows } from '../connection/statements.js'
import type { Snapshot, Tx } from '../connection/tx.js'
import source from './records.sql'

type Name = { kind: string; id: string }
type Range = { kind: string; after: string; limit: number }

interface RecordRow {
  readonly kind: string
  readonly id: string
  /** JSON. */
  readonly body: string
  readonly written_at: number
  readonly expires_at: number | null
}

const writeRecord = change<Name & { body: string; expiresAt: number | null }>(source, 'putRecord')
const selectRecord = row<Name, RecordRow>(source, 'getRecord')
const listForwards = rows<Range, RecordRow>(source, 'listRecords')
const listBackwards = rows<Range, RecordRow>(source, 'listRecordsBackwards')
const deleteRecord = change<Name>(source, 'removeRecord')

export function putRecord(tx: Tx, { kind, id, body, ttlMs, ifAbsent }: RecordWrite): RecordPutResult {
  checkRecordName(kind, 'kind')
  checkRecordName(id, 'id')
  const known = ifAbsent ? getRecord(tx, kind, id) : undefined
  if (known !== undefined) return { written: false, record: known }
  const expiresAt = ttlMs === undefined ? null : tx.now + Math.ceil(ttlMs)
  const text = JSON.stringify(body)
  writeRecord(tx, { kind, id, body: text, expiresAt })
  return { written: true, record: toRecord({ kind, id, body: text, written_at: tx.now, expires_at: expiresAt }) }
}

export function getRecord(snapshot: Snapshot, kind: string, id: string): StoredRecord | undefined {
  const row = selectRecord(snapshot, { kind, id })
  return row === undefined ? undefined : toRecord(row)
}

/** Sorts after every id: ids are printable ASCII of at most 255 characters. */
const END = '~'.repeat(256)

export function listRecords(snapshot: Snapshot, query: RecordQuery): Page<StoredRecord> {
  const { kind, limit, backwards = false, after = backwards ? END : '' } = query
  checkPageLimit(limit)
  const found = (backwards ? listBackwards : listForwards)(snapshot, { kind, after, limit: limit + 1 })
  const items = found.slice(0, limit).map(toRecord)
  const last = items.at(-1)
  return found.length > limit && last !== undefined ? { items, next: last.id } : { items }
}

export function removeRecord(tx: Tx, kind: string, id: string): boolean {
  return deleteRecord(tx, { kind, id }) > 0
}

function toRecord({ kind, id, body, written_at, expires_at }: RecordRow): StoredRecord {
  const record = { kind, id, body: JSON.parse(body) as Json, writtenAt: written_at }
  return expires_at === null ? record : { ...record, expiresAt: expires_at }
}
