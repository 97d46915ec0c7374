/** Taking locks: one, with a place in its queue, or many that are free. `acquire.sql` explains the protocol. */
import type { AcquireRequest, AcquireResult } from '../../../core/locks/lease.js'
import type { Database } from '../connection/database.js'
import { call, callAll, changes, integer, milliseconds, optional, sqlFunction, text } from '../schema/sql-function.js'
import source from './acquire.sql'
import { acquisitionRows, grantColumns, leaseOf } from './lease-codec.js'

const acquireOne = sqlFunction({
  name: 'acquire_lock',
  source,
  takes: {
    lockName: text,
    holderId: text,
    ttl: milliseconds,
    permitLimit: integer,
    instanceId: optional(text),
    leastToken: integer,
    waitMs: milliseconds,
    proofNumber: optional(integer),
  },
  gives: {
    nowMs: integer,
    until: optional(integer),
    token: optional(integer),
    acquiredAt: integer,
    expiresAt: integer,
    instance: optional(text),
    hints: changes,
  },
})

export async function acquireLock(db: Database, request: AcquireRequest): Promise<AcquireResult> {
  const { name, holder, waitMs = 0, remote = false } = request
  const args = {
    lockName: name,
    holderId: holder,
    ttl: request.ttlMs,
    permitLimit: request.permits,
    instanceId: request.instance,
    leastToken: request.floor,
    waitMs,
  }
  const { nowMs, until, token, acquiredAt, expiresAt, instance, hints } = await db.withProof(
    (proof) => call(db, acquireOne, { ...args, proofNumber: remote ? null : proof }),
    { again: true },
  )
  db.announce(hints)
  if (token === undefined) return { acquired: false, until: until ?? nowMs, now: nowMs }
  return { acquired: true, lease: leaseOf({ name, holder, token, acquiredAt, expiresAt, instance }), now: nowMs }
}

const acquireMany = sqlFunction({
  name: 'acquire_locks',
  source,
  takes: { acquisitions: acquisitionRows, proofNumber: optional(integer) },
  gives: grantColumns,
})

/** Takes the locks that are free, in one transaction. Undefined for each that is to be acquired by itself. */
export async function acquireFree(
  db: Database,
  requests: readonly AcquireRequest[],
): Promise<(AcquireResult | undefined)[]> {
  const rows = await db.withProof((proof) => callAll(db, acquireMany, { acquisitions: requests, proofNumber: proof }), {
    again: true,
  })
  const taken = new Map(rows.map((row) => [row.name, leaseOf(row)]))
  return requests.map(({ name, holder }) => {
    const lease = taken.get(name)
    return lease?.holder === holder ? { acquired: true, lease, now: lease.acquiredAt } : undefined
  })
}
