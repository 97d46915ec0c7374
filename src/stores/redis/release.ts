/** Giving a lock back, and handing it to the next in line. `leases.ts` says how locks work. */
import type { ReleaseRequest } from '../../core/lease.js'
import type { Server } from './connection.js'
import { runScript } from './script.js'
import { word } from './token-text.js'

const RELEASE = runScript(`
local K, holder, minHold = ARGV[1], ARGV[2], tonumber(ARGV[3])
local m = name(K)
local h = holderOf(m, holder)
local held = h ~= nil and h.run == '-' and h.released == '0'
local waited = m.waits and dropWaiter(m, holder) == 1
if held then
  if h.acquired + minHold <= now then removeHolder(m, h)
  else
    h.released, h.expires = '1', h.acquired + minHold
    changeName(m)
  end
end
touch(touchedNames, K)
finish()
-- Whoever was next has been told by himself. Otherwise whoever has no place in the line may want to know.
if held and not handedOn then wake(LEASES) end
return { (held or waited) and 1 or 0, wakes }`)

export async function releaseLease(
  server: Server,
  shard: number,
  { name, holder, minHoldMs = 0 }: ReleaseRequest,
): Promise<boolean> {
  const [released] = await server.write(RELEASE, shard, [word(name), word(holder), minHoldMs])
  return released === 1
}
