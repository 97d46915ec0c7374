/**
 * Records are few, and all in the first shard: of each kind a hash with the texts, and an index of ids in order. One more
 * index has what expires, by when.
 */
import type { Json } from '../../../core/json.js'
import { checkPageLimit } from '../../../core/page-limit.js'
import { checkRecordName, type RecordQuery, type RecordWrite, type StoredRecord } from '../../../core/record.js'
import type { Page, RecordPutResult } from '../../../core/store.js'
import { script } from '../connection/script.js'
import { listOf, type Server } from '../connection/server.js'

const SHARD = 0

/** A text is `<written> <expires or -> <body>`. */
const RECORDS = `
local function records(kind) return KEYS[1] .. 'rc:' .. kind end
local function ids(kind) return KEYS[1] .. 'ri:' .. kind end
local EXPIRY = KEYS[1] .. 'rx'

local function live(kind, id)
  local text = redis.call('HGET', records(kind), id)
  if not text then return false end
  local expires = string.match(text, '^%d+ (%S+) ')
  if expires ~= '-' and tonumber(expires) <= now then return false end
  return text
end

local function forget(kind, id)
  redis.call('HDEL', records(kind), id)
  redis.call('ZREM', ids(kind), id)
  redis.call('ZREM', EXPIRY, kind .. ' ' .. id)
end`

const PUT = script(
  RECORDS,
  `
local kind, id, body, ttl, ifAbsent = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local known = ifAbsent == '1' and live(kind, id)
if known then return { 0, known, 0 } end
local expires = ttl == '-' and '-' or int(now + ttl)
local text = nowText .. ' ' .. expires .. ' ' .. body
redis.call('HSET', records(kind), id, text)
redis.call('ZADD', ids(kind), 0, id)
if expires == '-' then redis.call('ZREM', EXPIRY, kind .. ' ' .. id)
else redis.call('ZADD', EXPIRY, expires, kind .. ' ' .. id) end
return { 1, nowText .. ' ' .. expires .. ' ', 0 }`,
)

export async function putRecord(server: Server, write: RecordWrite): Promise<RecordPutResult> {
  const { kind, id, body, ttlMs, ifAbsent = false } = write
  checkRecordName(kind, 'kind')
  checkRecordName(id, 'id')
  const ttl = ttlMs === undefined ? '-' : Math.ceil(ttlMs)
  const given = JSON.stringify(body)
  const [written, text] = await server.write(PUT, SHARD, [kind, id, given, ttl, ifAbsent ? 1 : 0])
  // What was written need not come back to be known.
  if (Number(written) === 1) return { written: true, record: { ...toRecord(kind, id, `${String(text)}null`), body } }
  return { written: false, record: toRecord(kind, id, String(text)) }
}

const GET = script(RECORDS, 'return live(ARGV[1], ARGV[2])')

export async function getRecord(server: Server, kind: string, id: string): Promise<StoredRecord | undefined> {
  const text = await server.read(GET, SHARD, [kind, id])
  return text === null ? undefined : toRecord(kind, id, String(text))
}

/** Passes over what expired and is not yet forgotten. */
const LIST = script(
  RECORDS,
  `
local kind, backwards, from, limit = ARGV[1], ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
local found = {}
repeat
  local chunk
  if backwards then chunk = redis.call('ZREVRANGEBYLEX', ids(kind), from, '-', 'LIMIT', 0, limit)
  else chunk = redis.call('ZRANGEBYLEX', ids(kind), from, '+', 'LIMIT', 0, limit) end
  for _, id in ipairs(chunk) do
    local text = live(kind, id)
    if text and #found < limit * 2 then
      found[#found + 1] = id
      found[#found + 1] = text
    end
    from = '(' .. id
  end
until #chunk < limit or #found >= limit * 2
return found`,
)

export async function listRecords(server: Server, query: RecordQuery): Promise<Page<StoredRecord>> {
  const { kind, after, limit, backwards = false } = query
  checkPageLimit(limit)
  const from = after === undefined ? (backwards ? '+' : '-') : `(${after}`
  const texts = listOf(await server.read(LIST, SHARD, [kind, backwards ? 1 : 0, from, limit + 1])).map(String)
  const found = texts.flatMap((id, at) => (at % 2 === 0 ? [toRecord(kind, id, texts[at + 1] ?? '')] : []))
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return found.length > limit && last !== undefined ? { items, next: last.id } : { items }
}

const REMOVE = script(
  RECORDS,
  `
local there = live(ARGV[1], ARGV[2])
forget(ARGV[1], ARGV[2])
return { there and 1 or 0, 0 }`,
)

export async function removeRecord(server: Server, kind: string, id: string): Promise<boolean> {
  const [removed] = await server.write(REMOVE, SHARD, [kind, id])
  return Number(removed) === 1
}

const PRUNE = script(
  RECORDS,
  `
local old = redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', now, 'LIMIT', 0, ARGV[1])
for _, place in ipairs(old) do forget(string.match(place, '^(%S+) (.*)$')) end
return { #old, 0 }`,
)

export async function pruneRecords(server: Server, limit: number): Promise<number> {
  if (limit <= 0) return 0
  const [forgotten] = await server.write(PRUNE, SHARD, [limit])
  return Number(forgotten)
}

function toRecord(kind: string, id: string, text: string): StoredRecord {
  const [, writtenAt, expiresAt, body = 'null'] = /^(\d+) (\S+) (.*)$/s.exec(text) ?? []
  const record = { kind, id, body: JSON.parse(body) as Json, writtenAt: Number(writtenAt) }
  return expiresAt === '-' ? record : { ...record, expiresAt: Number(expiresAt) }
}
