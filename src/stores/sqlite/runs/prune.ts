/** Deletes old history and all that has expired. Each kind has an index by age, so the cost depends on what is deleted. */
import type { PruneRequest } from '../../../core/store.js'
import type { SqliteFile } from '../connection/file.js'
import { change, row, rows } from '../connection/statements.js'
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
type Limit = { limit: number }

const forgetSkips = change<Before>(source, 'forgetSkips')
const forgetNames = change<Before>(source, 'forgetNames')
const forgetDedupes = change<Limit>(source, 'forgetDedupes')
const forgetRecords = change<Limit>(source, 'forgetRecords')

const STEPS: readonly Step[] = [
  pruneRuns,
  (tx, { maxAgeMs }, limit) => forgetSkips(tx, { until: tx.now - maxAgeMs, limit }),
  pruneSchedules,
  pruneLocks,
  (tx, { leaseAgeMs }, limit) => forgetNames(tx, { until: tx.now - leaseAgeMs, limit }),
  (tx, _, limit) => forgetDedupes(tx, { limit }),
  (tx, _, limit) => forgetRecords(tx, { limit }),
]

const countEnded = row<{ enough: number }, { runs: number }>(source, 'countEnded')
const oldestEnded = rows<Limit, { id: number; finished_at: number }>(source, 'oldestEnded')
const forgetRuns = change<{ runs: string }>(source, 'forgetRuns')

function pruneRuns(tx: Tx, { maxAgeMs, maxRuns }: PruneRequest, limit: number): number {
  const surplus = (countEnded(tx, { enough: maxRuns })?.runs ?? 0) - maxRuns
  const oldest = oldestEnded(tx, { limit })
  const young = oldest.findIndex(({ finished_at }, at) => finished_at > tx.now - maxAgeMs && at >= surplus)
  const gone = young === -1 ? oldest : oldest.slice(0, young)
  return forgetRuns(tx, { runs: JSON.stringify(gone.map(({ id }) => id)) })
}

const finishedSchedules = rows<Before, { id: string }>(source, 'finishedSchedules')

/** Deletes a finished schedule when its history is old, too, and none of its runs is unfinished. */
function pruneSchedules(tx: Tx, { maxAgeMs }: PruneRequest, limit: number): number {
  const gone = finishedSchedules(tx, { until: tx.now - maxAgeMs, limit })
  for (const schedule of gone) forgetSchedule(tx, schedule)
  return gone.length
}

const expiredLocks = rows<Before, { name: string; holder: string }>(source, 'expiredLocks')

/** Prunes locks whose holders disappeared without a release. */
function pruneLocks(tx: Tx, { leaseAgeMs }: PruneRequest, limit: number): number {
  const gone = expiredLocks(tx, { until: tx.now - leaseAgeMs, limit })
  for (const { name, holder } of gone) dropHolder(tx, name, holder)
  return gone.length
}
