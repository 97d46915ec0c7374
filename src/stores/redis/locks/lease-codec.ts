/** Leases as scripts tell of them: `lease-codec.lua` has the text of a lock. */
import type { Lease } from '../../../core/locks/lease.js'
import { flag, maybe, named, number, text, type ValueOf } from '../connection/shapes.js'
import { runId } from '../runs/run-codec.js'

export const toldLease = named({
  holder: text,
  token: number,
  acquiredAt: number,
  expiresAt: number,
  released: flag,
  instance: maybe(text),
  run: maybe(text),
})

export function toLease(shard: number, name: string, told: ValueOf<typeof toldLease>): Lease {
  const { holder, token, acquiredAt, expiresAt, released, instance, run } = told
  return {
    ...{ name, holder, token, acquiredAt, expiresAt },
    ...(instance === undefined ? {} : { instance }),
    ...(run === undefined ? {} : { run: runId(shard, run) }),
    ...(released ? { released } : {}),
  }
}
