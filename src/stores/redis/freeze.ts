import type { Frozen } from '../../core/store.js'
import type { Server } from './connection.js'
import { script } from './script.js'

const FREEZE = script(`
redis.call('HSETNX', KEYS[1] .. 'meta', 'frozen', int(now) .. ' ' .. ARGV[1])
return { 0 }`)

const THAW = script(`
redis.call('HDEL', KEYS[1] .. 'meta', 'frozen')
return { RUNS }`)

const FROZEN = script(`return redis.call('HGET', KEYS[1] .. 'meta', 'frozen')`)

export async function freezeStore(server: Server, shard: number, note: string | undefined): Promise<void> {
  await server.write(FREEZE, shard, [note === undefined ? '' : JSON.stringify(note)])
}

export async function thawStore(server: Server, shard: number): Promise<void> {
  await server.write(THAW, shard)
}

export async function frozenSince(server: Server, shard: number): Promise<Frozen | undefined> {
  const text = await server.read(FROZEN, shard)
  if (text === null) return undefined
  const [, at, note = ''] = /^(\d+) (.*)$/s.exec(String(text)) ?? []
  return { at: Number(at), ...(note === '' ? {} : { note: JSON.parse(note) as string }) }
}
