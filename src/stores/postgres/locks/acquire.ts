/** Taking locks, with places in their queues. `acquire.sql` explains the protocol. */
import type { AcquireRequest, AcquireResult } from '../../../core/locks/lease.js'
import type { Database } from '../connection/database.js'
import { callAll, changes, integer, optional, sqlFunction } from '../schema/sql-function.js'
import source from './acquire.sql'
import { acquisitionRows, grantColumns, leaseOf } from './lease-codec.js'

const acquire = sqlFunction({
  name: 'acquire_locks',
  source,
  takes: { acquisitions: acquisitionRows, proofNumber: optional(integer) },
  gives: { nowMs: integer, until: optional(integer), ...grantColumns, token: optional(integer), hints: changes },
})

export async function acquireLocks(db: Database, requests: readonly AcquireRequest[]): Promise<AcquireResult[]> {
  const rows = await db.withProof((proof) => callAll(db, acquire, { acquisitions: requests, proofNumber: proof }), {
    again: true,
  })
  db.announce(rows[0]?.hints ?? '{}')
  return rows.map(({ nowMs, until = nowMs, hints, token, ...grant }) => {
    if (token === undefined) return { acquired: false, until, now: nowMs }
    return { acquired: true, lease: leaseOf({ ...grant, token }), now: nowMs }
  })
}
