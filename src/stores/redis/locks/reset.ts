import { shardOf } from '../cluster/shards.js'
import { luaScript, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './reset.lua'

const resetScript = luaScript({
  name: 'locks/reset',
  source,
  writes: true,
  takes: { name: text },
  gives: { count: number },
})

export async function resetLease(server: Server, name: string): Promise<number> {
  return (await server.call(resetScript, shardOf(name, server.shards), { name })).count
}
