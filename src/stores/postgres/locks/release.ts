import { failure } from '../../../core/errors.js'
import type { ReleaseRequest } from '../../../core/locks/lease.js'
import type { Database } from '../connection/database.js'
import type { Wakes } from '../connection/wakes.js'
import { changes, integers, sqlFunction, text, texts } from '../schema/sql-function.js'
import { releaseRows } from './lease-codec.js'
import source from './release.sql'

const release = sqlFunction({
  name: 'release_locks',
  source,
  takes: { releases: releaseRows, channel: text },
  gives: { released: integers, handed: texts, hints: changes },
})

/** `unknown`: an earlier try may have released the lock, but its reply was lost. */
export type Released = 'released' | 'not held' | 'unknown'

/** Releases locks. If a lock is handed to a waiter in this process, the waiter is woken here. */
export async function releaseLocks(
  db: Database,
  wakes: Wakes,
  requests: readonly ReleaseRequest[],
): Promise<Released[]> {
  const values = release.values({ releases: requests, channel: db.channel ?? '' })
  const { rows, isInDoubt } = await db.writeReportingDoubt(release.sql, values)
  const { released, handed, hints } = release.read(rows[0] ?? [])
  for (const holder of handed) wakes.handedTo(holder)
  db.announce(hints)
  const places = new Set(released)
  return requests.map((_, at) => (places.has(at + 1) ? 'released' : isInDoubt ? 'unknown' : 'not held'))
}

/** Whether the lock, or a place in its queue, was released. Throws if that is unknown. */
export function wasReleased(released: Released, lock: string): boolean {
  if (released !== 'unknown') return released === 'released'
  throw failure(
    'STORE_UNREACHABLE',
    `the connection broke while the lock "${lock}" was released: it is free now, but the store no longer knows whether it was still held`,
  )
}
