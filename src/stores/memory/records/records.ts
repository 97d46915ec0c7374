import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { checkRecordName, type RecordQuery, type RecordWrite, type StoredRecord } from '../../../core/records/record.js'
import type { Page, RecordPutResult } from '../../../core/store.js'
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
  const shelf = state.records.get(kind) ?? new Map<string, StoredRecord>()
  state.records.set(kind, shelf.set(id, record))
  return { written: true, record: copyOf(record) }
}

export function getRecord(state: MemoryState, kind: string, id: string): StoredRecord | undefined {
  const record = state.records.get(kind)?.get(id)
  return record === undefined || isOver(record, state.now) ? undefined : copyOf(record)
}

export function listRecords(state: MemoryState, query: RecordQuery): Page<StoredRecord> {
  const { kind, after, limit, backwards = false } = query
  checkPageLimit(limit)
  const forwards = [...(state.records.get(kind)?.values() ?? [])]
    .filter((record) => !isOver(record, state.now))
    .sort((one, other) => (one.id < other.id ? -1 : 1))
  const line = backwards ? forwards.reverse() : forwards
  const found = line.filter(({ id }) => after === undefined || (backwards ? id < after : id > after))
  const items = found.slice(0, limit).map(copyOf)
  const last = items.at(-1)
  return found.length > limit && last !== undefined ? { items, next: last.id } : { items }
}

export function removeRecord(state: MemoryState, kind: string, id: string): boolean {
  const isThere = getRecord(state, kind, id) !== undefined
  const shelf = state.records.get(kind)
  shelf?.delete(id)
  if (shelf?.size === 0) state.records.delete(kind)
  return isThere
}

export function* pruneRecords(state: MemoryState) {
  for (const shelf of state.records.values()) {
    for (const record of shelf.values()) {
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
