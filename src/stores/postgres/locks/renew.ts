import type { Lease, RenewRequest } from '../../../core/locks/lease.js'
import type { Database } from '../connection/database.js'
import { callAll, integer, optional, sqlFunction } from '../schema/sql-function.js'
import { leaseColumns, renewalRows } from './lease-codec.js'
import source from './renew.sql'

const renew = sqlFunction({
  name: 'renew_locks',
  source,
  takes: { renewals: renewalRows, proofNumber: optional(integer) },
  gives: { place: integer, ...leaseColumns },
})

export async function renewLeases(
  db: Database,
  requests: readonly RenewRequest[],
  options: { readonly again?: boolean } = {},
): Promise<(Lease | undefined)[]> {
  if (requests.length === 0) return []
  const isRemote = requests.every((request) => request.remote)
  const ttlMs = Math.min(...requests.map((request) => request.ttlMs))
  const rows = await db.withProof(
    (proof) => callAll(db, renew, { renewals: requests, proofNumber: isRemote ? null : proof }, { ttlMs }),
    options,
  )
  const renewed = new Map(rows.map(({ place, ...lease }) => [place, lease]))
  return requests.map((_, at) => renewed.get(at + 1))
}
