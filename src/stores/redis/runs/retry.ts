import type { RetryResult } from '../../../core/store.js'
import { luaScript, oneOf, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import { placeIn } from './list.js'
import source from './retry.lua'

const retryScript = luaScript({
  name: 'runs/retry',
  source,
  writes: true,
  takes: { number: text },
  gives: { result: oneOf<RetryResult>('ready', 'refused', 'missing') },
})

export async function retryRun(server: Server, id: string): Promise<RetryResult> {
  const place = placeIn(server, id)
  if (place === undefined) return 'missing'
  return (await server.call(retryScript, place.shard, { number: place.number })).result
}
