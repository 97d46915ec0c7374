import type { Stamp } from '../../../core/store.js'
import { homeOf, inShards, keyElsewhere } from '../cluster/shards.js'
import { listOf, luaScript, maybe, named, number, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { madeKey, numberIn } from './run-codec.js'
import source from './stamp.lua'

const stampScript = luaScript({
  name: 'runs/stamp',
  source,
  writes: true,
  takes: {
    stamps: listOf(
      named({ run: text, key: maybe(text), permits: maybe(number), whenBusy: maybe(text), keyShard: maybe(number) }),
    ),
  },
  gives: {},
})

export async function stampRuns(server: Server, stamps: readonly Stamp[]): Promise<void> {
  await inShards(
    stamps,
    ({ run }) => homeOf(server, run),
    async (shard, own) => {
      const stamped = own.map(({ run, key }) => ({
        run: numberIn(run),
        ...madeKey(key, keyElsewhere(server, shard, key)),
      }))
      await server.call(stampScript, shard, { stamps: stamped })
      return []
    },
  )
}
