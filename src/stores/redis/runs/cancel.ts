import type { CancelResult } from '../../../core/store.js'
import { luaScript, oneOf, text } from '../connection/lua-script.js'
import type { Server } from '../connection/server.js'
import source from './cancel.lua'
import { placeIn } from './list.js'

const cancelScript = luaScript({
  name: 'runs/cancel',
  source,
  writes: true,
  takes: { number: text },
  gives: { result: oneOf<CancelResult>('cancelled', 'requested', 'finished', 'missing') },
})

export async function cancelRun(server: Server, id: string): Promise<CancelResult> {
  const place = placeIn(server, id)
  if (place === undefined) return 'missing'
  return (await server.call(cancelScript, place.shard, { number: place.number })).result
}
