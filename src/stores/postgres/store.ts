/** The operations of the Postgres store, over a database. */
import type { NewRun } from '../../core/run.js'
import type { EnqueueResult, PutResult, ScheduleWrite, Store } from '../../core/store.js'
import { advanceSchedules } from './advance.js'
import { readyBacklog } from './backlog.js'
import { claimRuns } from './claim.js'
import { CoalescedWrites } from './connection/coalesced-writes.js'
import type { Database } from './connection/database.js'
import { Definitions } from './definitions.js'
import { diagnose } from './diagnose.js'
import { enqueueRuns, isAvailable, isPlain } from './enqueue.js'
import { freezeStore, frozenSince, thawStore } from './freeze.js'
import {
  beatInstance,
  declareSet,
  joinInstance,
  leaveInstance,
  listDeclared,
  listInstances,
  listJobs,
} from './instances.js'
import { inspectLease, listLeases, renewLeases, resetLease } from './leases.js'
import type { LockLines } from './lock-lines.js'
import { pruneHistory } from './prune.js'
import { getRecord, listRecords, putRecord, removeRecord } from './records.js'
import { rescueRuns } from './rescue.js'
import { cancelRun, getRun, listRuns, retryRun, stampRuns } from './runs.js'
import {
  applySchedules,
  getSchedule,
  listSchedules,
  pauseSchedule,
  putSchedules,
  removeSchedules,
  resumeSchedule,
  skippedRanges,
} from './schedules.js'
import { settleRuns } from './settle.js'
import { enqueueInside } from './transactions/enqueue-inside.js'
import { transactRun } from './transactions/transact.js'
import { TransactionSlots } from './transactions/transaction-slots.js'

const NOW = 'select belfry.now_us() / 1000'

/** All but opening and closing, which are the handle's. */
export function operationsOn(db: Database, lines: LockLines): Omit<Store, 'open' | 'close' | 'subscribe' | 'supports'> {
  const definitions = new Definitions()
  const slots = new TransactionSlots(db.pool)
  const put = (writes: readonly ScheduleWrite[]) => putSchedules(db, writes)
  const nameOf = ({ id }: ScheduleWrite) => id
  const puts = new CoalescedWrites<ScheduleWrite, PutResult>(put, { nameOf })
  const versioned = new CoalescedWrites<ScheduleWrite, PutResult>(put, { nameOf })
  const enqueues = new CoalescedWrites<NewRun, EnqueueResult>((runs) => enqueueRuns(db, runs))

  function op<Args extends readonly unknown[], Result>(work: (db: Database, ...args: Args) => Promise<Result>) {
    return (...args: Args): Promise<Result> => work(db, ...args)
  }

  return {
    schedules: {
      // What asks for a version may not be repeated, and shares with its like.
      put: (writes) => {
        if (writes.some(({ ifVersion }) => ifVersion !== undefined)) return versioned.write(writes)
        return puts.write(writes)
      },
      get: op(getSchedule),
      list: op(listSchedules),
      remove: op(removeSchedules),
      apply: op(applySchedules),
      pause: op(pauseSchedule),
      resume: op(resumeSchedule),
      advance: (request) => advanceSchedules(db, definitions, request),
      skips: op(skippedRanges),
    },
    runs: {
      // What can be refused goes by itself.
      enqueue: (runs, tx) => {
        if (tx !== undefined) return enqueueInside(db, runs, tx)
        return runs.every(isPlain) ? enqueues.write(runs) : enqueueRuns(db, runs)
      },
      claim: op(claimRuns),
      settle: op(settleRuns),
      transact: (attempt, work, signal) => transactRun(db, slots, attempt, work, signal),
      get: op(getRun),
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
      acquire: (request) => lines.acquire(request),
      renew: op(renewLeases),
      release: (request) => lines.release(request),
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
