/** Acquires locks, or places in their queues. `acquire.sql` explains the protocol. */
import type { AcquireRequest, AcquireResult } from '../../../core/locks/lease.js'
import type { Database } from '../connection/database.js'
import { callAll, changes, integer, optional, sqlFunction } from '../schema/sql-function.js'
import source from './acquire.sql'
import { acquisitionRows, grantColumns } from './lease-codec.js'

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
  db.announce(rows.at(-1)?.hints ?? '{}')
  const answers = new Map(rows.map((row) => [nameAndHolder(row), row]))
  return requests.map((request) => {
    const answer = answers.get(nameAndHolder(request))
    if (answer === undefined) throw new Error(`acquire_locks gave no answer for "${request.name}"`)
    const { nowMs, until = nowMs, hints: _, token, ...grant } = answer
    if (token === undefined) return { acquired: false, until, now: nowMs }
    return { acquired: true, lease: { ...grant, token }, now: nowMs }
  })
}

const nameAndHolder = ({ name, holder }: { readonly name: string; readonly holder: string }) => `${name}\n${holder}`
