/** Describes a key of a store for `belfry redis show`: what it is for, and its content with the stored texts parsed. */
import type { Json } from '../../../core/checks/json.js'
import { everywhere, shardKeys } from '../cluster/shards.js'
import { lookScript } from '../connection/check-server.js'
import { listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import { openLink } from '../connection/open-link.js'
import { Server } from '../connection/server.js'
import { type RedisOptions, readOptions } from '../options.js'
import { toRecord } from '../records/record-codec.js'
import { runId, toRun } from '../runs/run-codec.js'
import { toSchedule } from '../schedules/schedule-codec.js'
import { firstShard, KEYS, type KeyName, readKey } from './keys.js'
import source from './show.lua'

const showScript = luaScript({
  name: 'schema/show',
  source,
  takes: { key: text, member: maybe(text), limit: number },
  gives: { kind: text, size: number, members: listOf(named({ name: maybe(text), value: maybe(text) })) },
})

export interface ShownKey {
  readonly key: string
  /** The purpose of keys with this name. */
  readonly about: string
  /** How many members the key has. The list may have fewer. */
  readonly size: number
  readonly members: readonly ShownMember[]
}

export interface ShownMember {
  /** The field or member. Absent if the key is a string. */
  readonly name?: string
  /** The parsed value, or the score. */
  readonly value?: Json
}

/** How many members are shown at most. */
const SHOWN = 100

/**
 * Shows a key by its full name, such as `belfry:{0}:lock:mail`, or as `lock:mail` in all shards. `member` selects one
 * member. Returns undefined if the name is not that of a key of a store.
 */
export async function showKey(
  options: RedisOptions,
  name: string,
  member?: string,
): Promise<readonly ShownKey[] | undefined> {
  const { link, prefix, clock, timeoutMs } = readOptions(options)
  const server = new Server({ link, prefix, clock, timeoutMs, waitReplicas: 0, clockKind: 'server' })
  const wanted = readKey(name) ?? readKey(`${firstShard(prefix)}${name}`)
  if (wanted === undefined) return undefined
  try {
    await openLink(link, clock, server.limitMs, prefix)
    await server.callAt(lookScript, firstShard(prefix), {})
    const shards = Number(await server.send(firstShard(prefix), ['HGET', `${firstShard(prefix)}meta`, 'shards']))
    const starts = shardKeys(prefix, Math.max(shards, 1))
    server.useShards(starts)
    const key = wanted.of === '' ? wanted.key : `${wanted.key}:${wanted.of}`
    const given = { key, limit: SHOWN, ...(member === undefined ? {} : { member }) }
    const found = await everywhere(server, async (shard): Promise<ShownKey | undefined> => {
      const start = starts[shard] ?? ''
      if (name.startsWith(prefix) && !name.startsWith(start)) return undefined
      const { kind, size, members } = await server.call(showScript, shard, given)
      if (kind === 'none') return undefined
      const shown = members.map(({ name: own, value }) => ({
        ...(own === undefined ? {} : { name: own }),
        ...(value === undefined ? {} : { value: inWords(wanted.key, shard, own ?? wanted.of, value) }),
      }))
      return { key: `${start}${key}`, about: KEYS[wanted.key], size, members: shown }
    })
    return found.filter((each) => each !== undefined)
  } finally {
    server.close()
    link.close()
  }
}

/** The parsed content of a stored text. Scores and texts of other formats stay as they are. */
function inWords(key: KeyName, shard: number, member: string, stored: string): Json {
  switch (key) {
    case 'runs':
      return { ...toRun(runId(shard, member), stored) } as unknown as Json
    case 'schedules':
      return { ...toSchedule(member, stored) } as unknown as Json
    case 'record':
      return { ...toRecord('', member, stored) } as unknown as Json
    case 'lock':
    case 'lock-waiter-terms':
      return JSON.parse(stored) as Json
    case 'instance':
      return stored.split('\n').map((line) => JSON.parse(line) as Json)
    default:
      return stored
  }
}
