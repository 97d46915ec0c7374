/** Reads and writes records. They are few, so all are in the first shard. */
import { checkPageLimit } from '../../../core/checks/page-limit.js'
import { checkRecordName, type RecordQuery, type RecordWrite, type StoredRecord } from '../../../core/records/record.js'
import type { Page, RecordPutResult } from '../../../core/store.js'
import { flag, listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import getSource from './get.lua'
import listSource from './list.lua'
import pruneSource from './prune.lua'
import putSource from './put.lua'
import { toRecord } from './record-codec.js'
import removeSource from './remove.lua'

const SHARD = 0

const putScript = luaScript({
  name: 'records/put',
  source: putSource,
  writes: true,
  takes: { kind: text, id: text, body: text, ttlMs: maybe(number), ifAbsent: flag },
  gives: { written: flag, text },
})

export async function putRecord(server: Server, write: RecordWrite): Promise<RecordPutResult> {
  const { kind, id, body, ttlMs, ifAbsent = false } = write
  checkRecordName(kind, 'kind')
  checkRecordName(id, 'id')
  const given = { kind, id, body: JSON.stringify(body), ifAbsent, ttlMs: ttlMs && Math.ceil(ttlMs) }
  const { written, text: stored } = await server.call(putScript, SHARD, given)
  return { written, record: toRecord(kind, id, stored) }
}

const getScript = luaScript({
  name: 'records/get',
  source: getSource,
  takes: { kind: text, id: text },
  gives: { text: maybe(text) },
})

export async function getRecord(server: Server, kind: string, id: string): Promise<StoredRecord | undefined> {
  const { text: stored } = await server.call(getScript, SHARD, { kind, id })
  return stored === undefined ? undefined : toRecord(kind, id, stored)
}

const listScript = luaScript({
  name: 'records/list',
  source: listSource,
  takes: { kind: text, backwards: flag, from: text, limit: number },
  gives: { records: listOf(named({ id: text, text })) },
})

export async function listRecords(server: Server, query: RecordQuery): Promise<Page<StoredRecord>> {
  const { kind, after, limit, backwards = false } = query
  checkPageLimit(limit)
  const from = after === undefined ? (backwards ? '+' : '-') : `(${after}`
  const { records } = await server.call(listScript, SHARD, { kind, backwards, from, limit: limit + 1 })
  const items = records.slice(0, limit).map((each) => toRecord(kind, each.id, each.text))
  const last = items.at(-1)
  return records.length > limit && last !== undefined ? { items, next: last.id } : { items }
}

const removeScript = luaScript({
  name: 'records/remove',
  source: removeSource,
  writes: true,
  takes: { kind: text, id: text },
  gives: { removed: flag },
})

export async function removeRecord(server: Server, kind: string, id: string): Promise<boolean> {
  return (await server.call(removeScript, SHARD, { kind, id })).removed
}

const pruneScript = luaScript({
  name: 'records/prune',
  source: pruneSource,
  writes: true,
  takes: { limit: number },
  gives: { forgotten: number },
})

export async function pruneRecords(server: Server, limit: number): Promise<number> {
  if (limit <= 0) return 0
  return (await server.call(pruneScript, SHARD, { limit })).forgotten
}
