import type { Frozen } from '../../../core/store.js'
import { everywhere } from '../cluster/shards.js'
import { script } from '../connection/script.js'
import type { Server } from '../connection/server.js'

const FREEZE = script(`
redis.call('HSETNX', KEYS[1] .. 'meta', 'frozen', int(now) .. ' ' .. ARGV[1])
return { 0 }`)

const THAW = script(`
redis.call('HDEL', KEYS[1] .. 'meta', 'frozen')
return { RUNS }`)

const FROZEN = script(`return redis.call('HGET', KEYS[1] .. 'meta', 'frozen')`)

export async function freezeStore(server: Server, note: string | undefined): Promise<void> {
  const text = note === undefined ? '' : JSON.stringify(note)
  await everywhere(server, (shard) => server.write(FREEZE, shard, [text]))
}

export async function thawStore(server: Server): Promise<void> {
  await everywhere(server, (shard) => server.write(THAW, shard))
}

export async function frozenSince(server: Server): Promise<Frozen | undefined> {
  const text = await server.read(FROZEN, 0)
  if (text === null) return undefined
  const [, at, note = ''] = /^(\d+) (.*)$/s.exec(String(text)) ?? []
  return { at: Number(at), ...(note === '' ? {} : { note: JSON.parse(note) as string }) }
}
