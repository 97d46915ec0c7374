/** The store contract, one line an operation. */
import { systemClock } from '../../core/clock.js'
import type { Store } from '../../core/store.js'
import type { SqliteHandle, SqliteTransaction } from './connection/driver.js'
import type { SqliteFile } from './connection/file.js'
import { OpenFile } from './connection/open-file.js'
import { reopen } from './connection/reopen.js'
import type { Snapshot, Tx } from './connection/tx.js'
import type { Steps } from './connection/write-queue.js'
import { diagnose } from './diagnose.js'
import { beatInstance } from './instances/beat.js'
import { declareSet, listDeclared } from './instances/declarations.js'
import { joinInstance } from './instances/join.js'
import { leaveInstance } from './instances/leave.js'
import { listInstances, listJobs } from './instances/list.js'
import { acquireLease, lookForLease } from './locks/acquire.js'
import { inspectLease, listLeases } from './locks/list.js'
import { releaseLease } from './locks/release.js'
import { renewLeases } from './locks/renew.js'
import { resetLease } from './locks/reset.js'
import { parseSqliteOptions, type SqliteOptions } from './options.js'
import { getRecord, listRecords, putRecord, removeRecord } from './records/records.js'
import { isAvailable } from './runs/available.js'
import { readyBacklog } from './runs/backlog.js'
import { cancelRun } from './runs/cancel.js'
import { claimRuns } from './runs/claim.js'
import { countRuns } from './runs/count.js'
import { enqueueRuns } from './runs/enqueue.js'
import { freeze, frozen, thaw } from './runs/freeze.js'
import { getRun, listRuns } from './runs/list.js'
import { pruneHistory } from './runs/prune.js'
import { rescueRuns } from './runs/rescue.js'
import { retryRun } from './runs/retry.js'
import { settleRuns } from './runs/settle.js'
import { stampRuns } from './runs/stamp.js'
import { advanceSchedules } from './schedules/advance.js'
import { applySchedules } from './schedules/apply.js'
import { countSchedules } from './schedules/count.js'
import { getSchedule, listSchedules } from './schedules/list.js'
import { pauseSchedule, resumeSchedule } from './schedules/pause.js'
import { putSchedules } from './schedules/put.js'
import { removeSchedules } from './schedules/remove.js'
import { skippedRanges } from './schedules/skips.js'
import { enqueueInside } from './transactions/enqueue-inside.js'

/** `transaction()` gives handlers the `database`, or what the runtime opens for a path: a handle of libsql or of `node:sqlite`. */
export function sqlite<Handle extends SqliteHandle>(
  options: SqliteOptions & { readonly database: Handle },
): Store<Handle>
export function sqlite(options: SqliteOptions): Store<SqliteTransaction>
export function sqlite(options: SqliteOptions): Store {
  const parsed = parseSqliteOptions(options)
  const open = new OpenFile(parsed)

  /** Operations that write in one short transaction. */
  const writes =
    <Args extends readonly unknown[], Result>(work: (tx: Tx, ...args: Args) => Result) =>
    async (...args: Args): Promise<Result> =>
      (await open.file()).write((tx) => work(tx, ...args))
  /** Operations that write in one transaction, which may be long. */
  const writesInSteps =
    <Args extends readonly unknown[], Result>(work: (tx: Tx, ...args: Args) => Steps<Result>) =>
    async (...args: Args): Promise<Result> =>
      (await open.file()).writeInSteps((tx) => work(tx, ...args))
  /** Operations that only read. */
  const reads =
    <Args extends readonly unknown[], Result>(work: (snapshot: Snapshot, ...args: Args) => Result) =>
    async (...args: Args): Promise<Result> =>
      (await open.file()).read((snapshot) => work(snapshot, ...args))
  /** Operations that make their own reads and transactions. */
  const uses =
    <Args extends readonly unknown[], Result>(work: (file: SqliteFile, ...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> =>
      work(await open.file(), ...args)

  const enqueue = writesInSteps(enqueueRuns)
  const acquire = writes(acquireLease)
  const look = reads(lookForLease)
  return {
    supports: { transactions: true, wakeups: false, durable: true, shared: true },
    schedules: {
      put: writesInSteps(putSchedules),
      get: reads(getSchedule),
      count: reads(countSchedules),
      list: uses(listSchedules),
      remove: writesInSteps(removeSchedules),
      apply: writesInSteps(applySchedules),
      pause: writes(pauseSchedule),
      resume: writes(resumeSchedule),
      advance: uses(advanceSchedules),
      skips: reads(skippedRanges),
    },
    runs: {
      enqueue: async (runs, tx) => (tx === undefined ? enqueue(runs) : enqueueInside(await open.file(), runs, tx)),
      claim: uses(claimRuns),
      settle: uses(settleRuns),
      get: reads(getRun),
      count: reads(countRuns),
      list: uses(listRuns),
      backlog: reads(readyBacklog),
      available: reads(isAvailable),
      cancel: writes(cancelRun),
      retry: writes(retryRun),
      stamp: writesInSteps(stampRuns),
      rescue: uses(rescueRuns),
      prune: uses(pruneHistory),
      transact: (attempt, work, signal) => open.transact(attempt, work, signal),
    },
    leases: {
      acquire: async (request) => (await look(request)) ?? acquire(request),
      renew: writesInSteps(renewLeases),
      release: writes(releaseLease),
      inspect: reads(inspectLease),
      list: reads(listLeases),
      reset: writes(resetLease),
    },
    instances: {
      join: writesInSteps(joinInstance),
      beat: writes(beatInstance),
      leave: writesInSteps((tx, instance: string) => leaveInstance(tx, instance)),
      list: reads(listInstances),
      jobs: reads(listJobs),
      declarations: reads(listDeclared),
      declare: writes(declareSet),
    },
    records: {
      put: writes(putRecord),
      get: reads(getRecord),
      list: reads(listRecords),
      remove: writes(removeRecord),
    },
    open: () => open.open(),
    close: () => open.close(),
    now: async () => (await open.file()).now(),
    subscribe: open.listeners.subscribe,
    ...(parsed.clock === systemClock ? { reopen: () => reopen(parsed) } : {}),
    freeze: writes(freeze),
    thaw: writes(thaw),
    frozen: reads(frozen),
    diagnose: reads(diagnose),
  }
}
