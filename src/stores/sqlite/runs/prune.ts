/** Deletes old history and all that has expired. Each kind has an index by age, so the cost depends on what is deleted. */
import type { PruneRequest } from '../../../core/store.js'
import type { Connection } from '../connection/connection.js'
import type { SqliteFile } from '../connection/file.js'
import { type Nothing, statement } from '../connection/statements.js'
import type { Tx } from '../connection/tx.js'
import { dropHolder } from '../locks/release.js'
import { forgetSchedule } from '../schedules/remove.js'
import source from './prune.sql'

/** Deletes up to `limit` entries of one kind, and returns how many. */
type Step = (tx: Tx, request: PruneRequest, limit: number) => number

/** How many entries one transaction deletes. */
const STEP = 250

export async function pruneHistory(file: SqliteFile, request: PruneRequest): Promise<number> {
  let forgotten = 0
  for (const step of STEPS) {
    for (let isMore = true; isMore && forgotten < request.limit; ) {
      const limit = Math.min(request.limit - forgotten, STEP)
      const count = await file.write((tx) => step(tx, request, limit))
      forgotten += count
      isMore = count === limit
    }
  }
  return forgotten
}

type Before = { until: number; limit: number }
type Expired = { now: number; limit: number }

const oldestEnded = statement<{ limit: number }, { id: number; finished_at: number }>(source, 'oldestEnded')
const forgetRuns = statement<{ runs: string }>(source, 'forgetRuns')
const forgetSkips = statement<Before>(source, 'forgetSkips')
const finishedSchedules = statement<Before & Expired, { id: string }>(source, 'finishedSchedules')
const expiredLocks = statement<Before, { name: string; holder: string }>(source, 'expiredLocks')
const forgetNames = statement<Before>(source, 'forgetNames')
const forgetDedupes = statement<Expired>(source, 'forgetDedupes')
const forgetRecords = statement<Expired>(source, 'forgetRecords')

const STEPS: readonly Step[] = [
  pruneRuns,
  ({ db, now }, { maxAgeMs }, limit) => db.run(forgetSkips, { until: now - maxAgeMs, limit }),
  pruneSchedules,
  pruneLocks,
  ({ db, now }, { leaseAgeMs }, limit) => db.run(forgetNames, { until: now - leaseAgeMs, limit }),
  ({ db, now }, _, limit) => db.run(forgetDedupes, { now, limit }),
  ({ db, now }, _, limit) => db.run(forgetRecords, { now, limit }),
]

function pruneRuns({ db, now }: Tx, { maxAgeMs, maxRuns }: PruneRequest, limit: number): number {
  const surplus = countEnded(db, maxRuns) - maxRuns
  const oldest = db.all(oldestEnded, { limit })
  const young = oldest.findIndex(({ finished_at }, at) => finished_at > now - maxAgeMs && at >= surplus)
  const gone = young === -1 ? oldest : oldest.slice(0, young)
  if (gone.length > 0) db.run(forgetRuns, { runs: JSON.stringify(gone.map(({ id }) => id)) })
  return gone.length
}

const endedRange = statement<Nothing, { oldest: number | null; newest: number | null }>(source, 'endedRange')
const countStatement = statement<Nothing, { runs: number }>(source, 'countEnded')

/** How many runs have ended. While an upper bound is at most `enough`, it is returned instead. */
function countEnded(db: Connection, enough: number): number {
  const { oldest, newest } = db.get(endedRange, {}) ?? {}
  const most = (newest ?? 0) - (oldest ?? 1) + 1
  return most <= enough ? most : (db.get(countStatement, {})?.runs ?? 0)
}

/** Deletes a finished schedule when its history is old, too, and none of its runs is unfinished. */
function pruneSchedules(tx: Tx, { maxAgeMs }: PruneRequest, limit: number): number {
  const gone = tx.db.all(finishedSchedules, { until: tx.now - maxAgeMs, now: tx.now, limit })
  for (const { id } of gone) forgetSchedule(tx, id)
  return gone.length
}

/** Prunes locks whose holders disappeared without a release. */
function pruneLocks(tx: Tx, { leaseAgeMs }: PruneRequest, limit: number): number {
  const gone = tx.db.all(expiredLocks, { until: tx.now - leaseAgeMs, limit })
  for (const { name, holder } of gone) dropHolder(tx, name, holder)
  return gone.length
}
