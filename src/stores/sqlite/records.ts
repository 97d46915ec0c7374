import type { Json } from '../../core/json.js'
import { checkPageLimit } from '../../core/page-limit.js'
import { checkRecordName, type RecordQuery, type RecordWrite, type StoredRecord } from '../../core/record.js'
import type { Page, RecordPutResult } from '../../core/store.js'
import type { Connection } from './connection.js'
import type { Tx } from './tx.js'

const COLUMNS = 'kind, id, body, written_at, expires_at'
const LIVE = '(expires_at is null or expires_at > ?1)'

type RecordRow = readonly [kind: string, id: string, body: string, writtenAt: number, expiresAt: number | null]

const PUT = `insert or replace into belfry_records (${COLUMNS}) values (?, ?, ?, ?, ?)`

export function putRecord({ db, now }: Tx, { kind, id, body, ttlMs, ifAbsent }: RecordWrite): RecordPutResult {
  checkRecordName(kind, 'kind')
  checkRecordName(id, 'id')
  const known = ifAbsent ? getRecord(db, now, kind, id) : undefined
  if (known !== undefined) return { written: false, record: known }
  const row: RecordRow = [kind, id, JSON.stringify(body), now, ttlMs === undefined ? null : now + Math.ceil(ttlMs)]
  db.run(PUT, ...row)
  return { written: true, record: toRecord(row) }
}

const GET = `select ${COLUMNS} from belfry_records where ${LIVE} and kind = ?2 and id = ?3`

export function getRecord(db: Connection, now: number, kind: string, id: string): StoredRecord | undefined {
  const row = db.get<RecordRow>(GET, now, kind, id)
  return row === undefined ? undefined : toRecord(row)
}

const LIST = `select ${COLUMNS} from belfry_records where ${LIVE} and kind = ?2 and id > ?3 order by id limit ?4`
const LIST_BACKWARDS = `select ${COLUMNS} from belfry_records
  where ${LIVE} and kind = ?2 and id < ?3 order by id desc limit ?4`
/** After every id there can be. */
const END = '~'.repeat(256)

export function listRecords(db: Connection, now: number, query: RecordQuery): Page<StoredRecord> {
  const { kind, after, limit, backwards = false } = query
  checkPageLimit(limit)
  const rows = backwards
    ? db.all<RecordRow>(LIST_BACKWARDS, now, kind, after ?? END, limit + 1)
    : db.all<RecordRow>(LIST, now, kind, after ?? '', limit + 1)
  const items = rows.slice(0, limit).map(toRecord)
  const last = items.at(-1)
  return rows.length > limit && last !== undefined ? { items, next: last.id } : { items }
}

const REMOVE = `delete from belfry_records where ${LIVE} and kind = ?2 and id = ?3`

export function removeRecord({ db, now }: Tx, kind: string, id: string): boolean {
  return db.run(REMOVE, now, kind, id) > 0
}

function toRecord([kind, id, body, writtenAt, expiresAt]: RecordRow): StoredRecord {
  const record = { kind, id, body: JSON.parse(body) as Json, writtenAt }
  return expiresAt === null ? record : { ...record, expiresAt }
}
