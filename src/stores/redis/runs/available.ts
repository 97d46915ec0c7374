import { shardOf } from '../cluster/shards.js'
import { luaScript, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './available.lua'

const availableScript = luaScript({
  name: 'runs/available',
  source,
  takes: { key: text },
  gives: { count: number },
})

export async function isAvailable(server: Server, key: string, limit: number): Promise<boolean> {
  return (await server.call(availableScript, shardOf(key, server.shards), { key })).count < limit
}
