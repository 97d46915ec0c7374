import type { Frozen } from '../../../core/store.js'
import { everywhere } from '../cluster/shards.js'
import { luaScript } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { flag, maybe, text } from '../connection/shapes.js'
import freezeSource from './freeze.lua'
import frozenSource from './frozen.lua'

const freezeScript = luaScript({
  name: 'runs/freeze',
  source: freezeSource,
  writes: true,
  takes: { frozen: flag, note: maybe(text) },
  gives: {},
})

const frozenScript = luaScript({
  name: 'runs/frozen',
  source: frozenSource,
  takes: {},
  gives: { frozen: maybe(text) },
})

export async function freezeStore(server: Server, note: string | undefined): Promise<void> {
  const given = { frozen: true, ...(note === undefined ? {} : { note }) }
  await everywhere(server, (shard) => server.call(freezeScript, shard, given))
}

export async function thawStore(server: Server): Promise<void> {
  await everywhere(server, (shard) => server.call(freezeScript, shard, { frozen: false }))
}

export async function frozenSince(server: Server): Promise<Frozen | undefined> {
  const { frozen } = await server.call(frozenScript, 0, {})
  return frozen === undefined ? undefined : (JSON.parse(frozen) as Frozen)
}
