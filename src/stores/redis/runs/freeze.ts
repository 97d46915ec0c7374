import type { Frozen } from '../../../core/store.js'
import { everywhere } from '../cluster/shards.js'
import { flag, luaScript, maybe, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import freezeSource from './freeze.lua'

const freezeScript = luaScript({
  name: 'runs/freeze',
  source: freezeSource,
  writes: true,
  takes: { frozen: flag, note: maybe(text) },
  gives: {},
})

export async function freezeStore(server: Server, note: string | undefined): Promise<void> {
  await everywhere(server, (shard) => server.call(freezeScript, shard, { frozen: true, note }))
}

export async function thawStore(server: Server): Promise<void> {
  await everywhere(server, (shard) => server.call(freezeScript, shard, { frozen: false }))
}

/** Since when the start of runs is stopped, and with which note. */
export async function frozenSince(server: Server): Promise<Frozen | undefined> {
  const frozen = await server.readText(0, ['HGET', 'meta', 'frozen'])
  return frozen === undefined ? undefined : (JSON.parse(frozen) as Frozen)
}
