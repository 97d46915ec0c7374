import type { Lease, RenewRequest } from '../../../core/locks/lease.js'
import type { Database } from '../connection/database.js'
import { integer, optional, sqlFunction } from '../schema/sql-function.js'
import { leaseCodec, renewalRows } from './lease-codec.js'
import source from './renew.sql'

const renew = sqlFunction({
  name: 'renew_locks',
  source,
  takes: { renewals: renewalRows, proofNumber: optional(integer) },
  gives: { place: integer },
})
const RENEW = `select f.place, ${leaseCodec.select('f')} from ${renew.from} f`

export async function renewLeases(
  db: Database,
  requests: readonly RenewRequest[],
  options: { readonly again?: boolean } = {},
): Promise<(Lease | undefined)[]> {
  if (requests.length === 0) return []
  const isRemote = requests.every((request) => request.remote)
  const ttlMs = Math.min(...requests.map((request) => request.ttlMs))
  const rows = await db.withProof((proof) => {
    const args = { renewals: requests, proofNumber: isRemote ? null : proof }
    return db.write(RENEW, renew.values(args), { ttlMs })
  }, options)
  const renewed = new Map(rows.map((row) => [Number(row[0]), leaseCodec.read(row, 1)]))
  return requests.map((_, at) => renewed.get(at + 1))
}
