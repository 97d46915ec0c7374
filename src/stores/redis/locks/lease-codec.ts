/** Leases as scripts tell of them. */
import type { Lease } from '../../../core/lease.js'
import { runId } from '../runs/run-codec.js'
import { fromWord } from '../schema/words.js'

/** How a holder is told of: as in its line, with its end by its instance's where it is a run. */
export const TOLD = `
local function told(m, h)
  return h.holder .. ' ' .. int(h.token) .. ' ' .. int(h.acquired) .. ' ' .. int(endOf(h)) .. ' ' .. h.released .. ' ' ..
    h.inst .. ' ' .. h.run
end`

export function toLease(shard: number, name: string, line: string): Lease {
  const [holder = '', token, acquired, expires, released, instance = '-', run = '-'] = line.split(' ')
  return {
    name,
    holder: fromWord(holder) ?? '',
    token: Number(token),
    acquiredAt: Number(acquired),
    expiresAt: Number(expires),
    ...(instance === '-' ? {} : { instance: fromWord(instance) ?? '' }),
    ...(run === '-' ? {} : { run: runId(shard, run) }),
    ...(released === '1' ? { released: true as const } : {}),
  }
}
