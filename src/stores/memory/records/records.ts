import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { checkRecordName, type RecordQuery, type RecordWrite, type StoredRecord } from '../../../core/records/record.js'
import type { Page, RecordPutResult } from '../../../core/store.js'
import { SortedTexts } from '../schema/sorted-texts.js'
import type { MemoryState } from '../schema/state.js'

export function putRecord(state: MemoryState, { kind, id, body, ttlMs, ifAbsent }: RecordWrite): RecordPutResult {
  checkRecordName(kind, 'kind')
  checkRecordName(id, 'id')
  const known = getRecord(state, kind, id)
  if (ifAbsent && known !== undefined) return { written: false, record: known }
  const { now } = state
  const record: StoredRecord = {
    ...{ kind, id, body: structuredClone(body), writtenAt: now },
    ...(ttlMs === undefined ? {} : { expiresAt: now + ttlMs }),
  }
  const shelf = state.records.get(kind) ?? { byId: new Map(), ids: new SortedTexts() }
  state.records.set(kind, shelf)
  shelf.byId.set(id, record)
  shelf.ids.add(id)
  return { written: true, record: copyOf(record) }
}

export function getRecord(state: MemoryState, kind: string, id: string): StoredRecord | undefined {
  const record = state.records.get(kind)?.byId.get(id)
  return record === undefined || isOver(record, state.now) ? undefined : copyOf(record)
}

export function listRecords(state: MemoryState, query: RecordQuery): Page<StoredRecord> {
  const { kind, after, limit } = query
  checkPageLimit(limit)
  const items: StoredRecord[] = []
  for (const id of idsOf(state, query)) {
    const record = id === after ? undefined : getRecord(state, kind, id)
    if (record === undefined) continue
    if (items.length === limit) return { items, next: items.at(-1)?.id ?? '' }
    items.push(record)
  }
  return { items }
}

function idsOf(state: MemoryState, { kind, after, backwards = false }: RecordQuery): Iterable<string> {
  const ids = state.records.get(kind)?.ids
  if (ids === undefined) return []
  return backwards ? ids.before(after) : ids.from(after ?? '')
}

export function removeRecord(state: MemoryState, kind: string, id: string): boolean {
  const isThere = getRecord(state, kind, id) !== undefined
  const shelf = state.records.get(kind)
  shelf?.byId.delete(id)
  shelf?.ids.delete(id)
  if (shelf?.byId.size === 0) state.records.delete(kind)
  return isThere
}

export function* pruneRecords(state: MemoryState) {
  for (const { byId } of state.records.values()) {
    for (const record of byId.values()) {
      if (!isOver(record, state.now)) continue
      removeRecord(state, record.kind, record.id)
      yield
    }
  }
}

function isOver({ expiresAt }: StoredRecord, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now
}

function copyOf(record: StoredRecord): StoredRecord {
  return { ...record, body: structuredClone(record.body) }
}
