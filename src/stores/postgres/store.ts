/** The operations of the Postgres store, over a database. */
import { CoalescedWrites } from '../../core/connection/coalesced-writes.js'
import type { AcquireRequest, AcquireResult, ReleaseRequest } from '../../core/locks/lease.js'
import type { NewRun } from '../../core/runs/run.js'
import type { EnqueueResult, PutResult, ScheduleWrite, Store } from '../../core/store.js'
import type { Database } from './connection/database.js'
import type { Wakes } from './connection/wakes.js'
import { diagnose } from './diagnose.js'
import { beatInstance } from './instances/beat.js'
import { declareSet, listDeclared } from './instances/declarations.js'
import { joinInstance } from './instances/join.js'
import { leaveInstance } from './instances/leave.js'
import { listInstances, listJobs } from './instances/list.js'
import { acquireLocks } from './locks/acquire.js'
import { inspectLease, listLeases } from './locks/list.js'
import { type Released, releaseLocks, wasReleased } from './locks/release.js'
import { renewLeases } from './locks/renew.js'
import { resetLease } from './locks/reset.js'
import { getRecord, listRecords, putRecord, removeRecord } from './records/records.js'
import { isAvailable } from './runs/available.js'
import { readyBacklog } from './runs/backlog.js'
import { cancelRun } from './runs/cancel.js'
import { claimRuns } from './runs/claim.js'
import { countRuns } from './runs/count.js'
import { enqueueRuns, isPlain } from './runs/enqueue.js'
import { freezeStore, frozenSince, thawStore } from './runs/freeze.js'
import { getRun, listRuns } from './runs/list.js'
import { pruneHistory } from './runs/prune.js'
import { rescueRuns } from './runs/rescue.js'
import { retryRun } from './runs/retry.js'
import { settleRuns } from './runs/settle.js'
import { stampRuns } from './runs/stamp.js'
import { advanceSchedules } from './schedules/advance.js'
import { applySchedules } from './schedules/apply.js'
import { countSchedules } from './schedules/count.js'
import { Definitions } from './schedules/definitions.js'
import { getSchedule, listSchedules } from './schedules/list.js'
import { pauseSchedule, resumeSchedule } from './schedules/pause.js'
import { removeSchedules } from './schedules/remove.js'
import { skippedRanges } from './schedules/skips.js'
import { enqueueInside } from './transactions/enqueue-inside.js'
import { transactRun } from './transactions/transact.js'
import { TransactionSlots } from './transactions/transaction-slots.js'

/**
 * Lock batches in flight at once. More than one, because a batch may wait for a name that another transaction has
 * locked.
 */
const LOCKS = { atOnce: 4 } as const

const NOW = 'select belfry.now_us() / 1000'

/** All operations except opening and closing, which are in `index.ts`. */
export function operationsOn(
  db: Database,
  wakes: Wakes,
): Omit<Store, 'open' | 'close' | 'subscribe' | 'supports' | '~tx'> {
  const definitions = new Definitions()
  const slots = new TransactionSlots(db.pool)
  const put = (writes: readonly ScheduleWrite[]) => applySchedules(db, writes, [])
  const nameOf = ({ id }: ScheduleWrite) => id
  const puts = new CoalescedWrites<ScheduleWrite, PutResult>(put, { nameOf })
  const versioned = new CoalescedWrites<ScheduleWrite, PutResult>(put, { nameOf })
  const acquisitions = new CoalescedWrites<AcquireRequest, AcquireResult>((asked) => acquireLocks(db, asked), LOCKS)
  const releases = new CoalescedWrites<ReleaseRequest, Released>((given) => releaseLocks(db, wakes, given), {
    ...{ ...LOCKS, nameOf: ({ name }) => name },
  })
  const enqueues = new CoalescedWrites<NewRun, EnqueueResult>((runs) => enqueueRuns(db, runs))

  function op<Args extends readonly unknown[], Result>(work: (db: Database, ...args: Args) => Promise<Result>) {
    return (...args: Args): Promise<Result> => work(db, ...args)
  }

  return {
    schedules: {
      // Writes with `ifVersion` must not be repeated after a lost reply, so they share batches only with each other.
      put: (writes) => {
        if (writes.some(({ ifVersion }) => ifVersion !== undefined)) return versioned.write(writes)
        return puts.write(writes)
      },
      get: op(getSchedule),
      count: op(countSchedules),
      list: op(listSchedules),
      remove: op(removeSchedules),
      apply: op(applySchedules),
      pause: op(pauseSchedule),
      resume: op(resumeSchedule),
      advance: (request) => advanceSchedules(db, definitions, request),
      skips: op(skippedRanges),
    },
    runs: {
      // Only runs that nothing can refuse share a batch with other calls.
      enqueue: (runs, tx) => {
        if (tx !== undefined) return enqueueInside(db, runs, tx)
        return runs.every(isPlain) ? enqueues.write(runs) : enqueueRuns(db, runs)
      },
      claim: op(claimRuns),
      settle: op(settleRuns),
      transact: (attempt, work, signal) => transactRun(db, slots, attempt, work, signal),
      get: op(getRun),
      count: op(countRuns),
      list: op(listRuns),
      backlog: op(readyBacklog),
      available: op(isAvailable),
      cancel: op(cancelRun),
      retry: op(retryRun),
      stamp: op(stampRuns),
      rescue: op(rescueRuns),
      prune: op(pruneHistory),
    },
    leases: {
      acquire: (request) => writeOne(acquisitions, request),
      renew: op(renewLeases),
      release: async (request) => wasReleased(await writeOne(releases, request), request.name),
      inspect: op(inspectLease),
      list: op(listLeases),
      reset: op(resetLease),
    },
    instances: {
      join: op(joinInstance),
      beat: op(beatInstance),
      leave: op(leaveInstance),
      list: op(listInstances),
      jobs: op(listJobs),
      declarations: op(listDeclared),
      declare: op(declareSet),
    },
    records: {
      put: op(putRecord),
      get: op(getRecord),
      list: op(listRecords),
      remove: op(removeRecord),
    },
    now: async () => Number((await db.read(NOW))[0]?.[0]),
    freeze: op(freezeStore),
    thaw: op(thawStore),
    frozen: op(frozenSince),
    diagnose: op(diagnose),
  }
}

async function writeOne<Item, Result>(writes: CoalescedWrites<Item, Result>, item: Item): Promise<Result> {
  const [result] = await writes.write([item])
  if (result === undefined) throw new Error('a shared write gave no result for its item')
  return result
}
