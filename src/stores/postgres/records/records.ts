import type { Json } from '../../../core/checks/json.js'
import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { checkRecordName, type RecordQuery, type RecordWrite, type StoredRecord } from '../../../core/records/record.js'
import type { Page, RecordPutResult } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { columnsOf, integer, json, optional, type RowCodec, text } from '../schema/sql-function.js'

const codec: RowCodec<StoredRecord> = columnsOf({
  kind: text,
  id: text,
  body: json<Json>(),
  writtenAt: integer,
  expiresAt: optional(integer),
})
const COLUMNS = codec.select('r')
const NOW = '(select belfry.now_us() / 1000)'
const LIVE = `(r.expires_at is null or r.expires_at > ${NOW})`

const PUT = `insert into belfry.records as r (kind, id, body, written_at, expires_at)
  select $1, $2, $3, now, now + $4::bigint from (select belfry.now_us() / 1000 as now) clock
  on conflict (kind, id) do update
    set body = excluded.body, written_at = excluded.written_at, expires_at = excluded.expires_at
    where not $5::boolean or not ${LIVE}
  returning r.kind, r.id, null, r.written_at, r.expires_at`

export async function putRecord(db: Database, write: RecordWrite): Promise<RecordPutResult> {
  const { kind, id, body, ttlMs, ifAbsent = false } = write
  checkRecordName(kind, 'kind')
  checkRecordName(id, 'id')
  for (;;) {
    const ttl = ttlMs === undefined ? null : Math.ceil(ttlMs)
    const [row] = await db.write(PUT, [kind, id, JSON.stringify(body), ttl, ifAbsent])
    // The statement does not return the body, because the caller has just sent it.
    if (row !== undefined) return { written: true, record: { ...codec.read(row), body } }
    const record = await getRecord(db, kind, id)
    // No record: the one that was in the way has expired or was removed since. So the write is tried again.
    if (record !== undefined) return { written: false, record }
  }
}

const GET = `select ${COLUMNS} from belfry.records r where r.kind = $1 and r.id = $2 and ${LIVE}`

export async function getRecord(db: Database, kind: string, id: string): Promise<StoredRecord | undefined> {
  const [row] = await db.read(GET, [kind, id])
  return row === undefined ? undefined : codec.read(row)
}

const LIST = `select ${COLUMNS} from belfry.records r where r.kind = $1 and r.id > $2 and ${LIVE} order by r.id limit $3`
const LIST_BACKWARDS = `select ${COLUMNS} from belfry.records r
  where r.kind = $1 and r.id < $2 and ${LIVE} order by r.id desc limit $3`
/** Sorts after every possible id. */
const END = '~'.repeat(256)

export async function listRecords(db: Database, query: RecordQuery): Promise<Page<StoredRecord>> {
  const { kind, after, limit, backwards = false } = query
  checkPageLimit(limit)
  const rows = backwards
    ? await db.read(LIST_BACKWARDS, [kind, after ?? END, limit + 1])
    : await db.read(LIST, [kind, after ?? '', limit + 1])
  const items = rows.slice(0, limit).map(codec.read)
  const last = items.at(-1)
  return rows.length > limit && last !== undefined ? { items, next: last.id } : { items }
}

const REMOVE = `delete from belfry.records r where r.kind = $1 and r.id = $2 and ${LIVE} returning r.id`

export async function removeRecord(db: Database, kind: string, id: string): Promise<boolean> {
  return (await db.write(REMOVE, [kind, id])).length > 0
}
