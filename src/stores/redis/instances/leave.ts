import { everywhere } from '../cluster/shards.js'
import { luaScript, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './leave.lua'

const leaveScript = luaScript({
  name: 'instances/leave',
  source,
  writes: true,
  takes: { instance: text },
  gives: {},
})

export async function leaveInstance(server: Server, instance: string): Promise<void> {
  await everywhere(server, (shard) => server.call(leaveScript, shard, { instance }))
}
