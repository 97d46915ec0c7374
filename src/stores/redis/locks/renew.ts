/**
 * Locks. One rule decides everything: a lease is its holder's until its time is over AND somebody else took it.
 *
 * - Two that ask at once: scripts come one after the other, so the first takes the permit and the second finds it busy.
 *   Its `until` says when to ask again, and with `waitMs` it has a place in the line.
 * - A holder that stalls past its time and comes back: if nobody took the lease, it renews and goes on. If somebody
 *   did, its line is gone, and renew, release and (for a run) settle are refused.
 * - A holder that dies: nobody has to notice. The next that asks takes its place, with a higher token.
 * - A waiter that dies: its place expires `waitMs` after it last asked, and with it a lease that was handed to it in
 *   between, unless it has asked again.
 * - A release that comes twice, or late: it only ever removes the holder's own line.
 * - A failover that loses the last writes: the lease may be given to another while its holder still trusts it, until
 *   its next renewal fails. The token of the new one is higher all the same, by the clock and by what clients have seen.
 */
import type { Lease, RenewRequest } from '../../../core/lease.js'
import { inShards, shardOf } from '../cluster/shards.js'
import { runScript } from '../connection/script.js'
import { type Server, textsOf } from '../connection/server.js'
import { word } from '../schema/words.js'
import { TOLD, toLease } from './lease-codec.js'

const RENEW = runScript(`${TOLD}
local results = {}
for at = 1, #ARGV, 4 do
  local m = name(ARGV[at])
  local h = holderOf(m, ARGV[at + 1])
  if h and int(h.token) == ARGV[at + 2] and h.released == '0' then
    if h.run == '-' then
      h.expires = now + tonumber(ARGV[at + 3])
      changeName(m)
    end
    results[#results + 1] = told(m, h)
  else results[#results + 1] = '' end
end
finish()
return { results, wakes }`)

export function renewLeases(server: Server, requests: readonly RenewRequest[]): Promise<(Lease | undefined)[]> {
  return inShards(
    requests,
    ({ name }) => shardOf(name, server.shards),
    async (shard, own) => {
      const args = own.flatMap(({ name, holder, token, ttlMs }) => [word(name), word(holder), token, ttlMs])
      const [results] = await server.write(RENEW, shard, args)
      const lines = textsOf(results)
      return own.map(({ name }, at) => (lines[at] ? toLease(shard, name, lines[at]) : undefined))
    },
  )
}

const RESET = runScript(`
local m = name(ARGV[1])
local holders = {}
for at, h in ipairs(m.holders) do holders[at] = h end
for _, h in ipairs(holders) do
  local r = h.run ~= '-' and load(h.run)
  if r then takeOver(r, false) else removeHolder(m, h) end
end
if #holders > 0 then wake(LEASES + ATTEMPTS) end
finish()
return { #holders, wakes }`)

export async function resetLease(server: Server, name: string): Promise<number> {
  const [count] = await server.write(RESET, shardOf(name, server.shards), [word(name)])
  return Number(count)
}
