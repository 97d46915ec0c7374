import type { AcquireRequest, Lease } from '../../../core/locks/lease.js'
import type { Database } from '../connection/database.js'
import { callAll, integer, optional, sqlFunction, text } from '../schema/sql-function.js'
import { holderRows, leaseOf } from './lease-codec.js'
import source from './look.sql'

const look = sqlFunction({
  name: 'look_at_locks',
  source,
  takes: { waiters: holderRows, proofNumber: optional(integer) },
  gives: {
    nowMs: integer,
    holders: integer,
    until: optional(integer),
    token: optional(integer),
    acquiredAt: integer,
    expiresAt: integer,
    instance: optional(text),
  },
})

/** What a waiter found. */
export interface Seen {
  readonly now: number
  /** How many hold the name. */
  readonly holders: number
  /** When the first of them runs out, as far as they have a time of their own. */
  readonly until: number
  /** The waiter's own. */
  readonly lease: Lease | undefined
}

export async function lookAtLocks(db: Database, requests: readonly AcquireRequest[]): Promise<Seen[]> {
  const found = await db.withProof((proof) => callAll(db, look, { waiters: requests, proofNumber: proof }), {
    again: true,
  })
  return found.map(({ nowMs, holders, until, token, acquiredAt, expiresAt, instance }, at) => {
    const { name = '', holder = '' } = requests[at] ?? {}
    return {
      now: nowMs,
      holders,
      until: until ?? Number.POSITIVE_INFINITY,
      lease: token === undefined ? undefined : leaseOf({ name, holder, token, acquiredAt, expiresAt, instance }),
    }
  })
}
