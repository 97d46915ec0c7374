/** Taking locks: one, with a place in its queue, or many that are plainly free. `acquire.sql` explains the protocol. */
import type { AcquireRequest, AcquireResult } from '../../../core/locks/lease.js'
import type { Database } from '../connection/database.js'
import { call, callAll, changes, integer, milliseconds, optional, sqlFunction, text } from '../schema/sql-function.js'
import source from './acquire.sql'
import { acquisitionRows } from './lease-codec.js'

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
  const lease = { name, holder, token, acquiredAt, expiresAt, ...(instance === undefined ? {} : { instance }) }
  return { acquired: true, lease, now: nowMs }
}

const acquireMany = sqlFunction({
  name: 'acquire_locks',
  source,
  takes: { acquisitions: acquisitionRows, proofNumber: optional(integer) },
  gives: { place: integer, nowMs: integer, token: integer },
})

/** Takes those that are plainly free, in one transaction. Undefined for each that is to be acquired by itself. */
export async function acquireFree(
  db: Database,
  requests: readonly AcquireRequest[],
): Promise<(AcquireResult | undefined)[]> {
  const taken = await db.withProof(
    (proof) => callAll(db, acquireMany, { acquisitions: requests, proofNumber: proof }),
    { again: true },
  )
  const results = requests.map((): AcquireResult | undefined => undefined)
  for (const { place, nowMs, token } of taken) {
    const request = requests[place - 1]
    if (request !== undefined) results[place - 1] = granted(request, token, nowMs)
  }
  return results
}

function granted({ name, holder, ttlMs, instance }: AcquireRequest, token: number, now: number): AcquireResult {
  const who = instance === undefined ? {} : { instance }
  const lease = { name, holder, token, acquiredAt: now, expiresAt: now + Math.ceil(ttlMs), ...who }
  return { acquired: true, lease, now }
}
