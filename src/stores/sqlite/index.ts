/**
 * The SQLite store: everything in one file, which any number of processes of one host may share.
 *
 * What is promised of all stores can be read off the memory store; this one does the same in the same files, with
 * statements in the place of maps. How the file is shared, and how its writer is shared within a process, is told in
 * `file.ts`; the tables are in `schema.ts`.
 */
import type { NoSource, StoreSource } from '../../core/beat-store.js'
import { systemClock } from '../../core/clock.js'
import type { Store } from '../../core/store.js'
import { advanceSchedules } from './advance.js'
import { readyBacklog } from './backlog.js'
import { claimRuns } from './claim.js'
import type { Connection } from './connection.js'
import { diagnose } from './diagnose.js'
import { enqueueRuns, isAvailable } from './enqueue.js'
import { enqueueInside } from './enqueue-inside.js'
import type { SqliteFile } from './file.js'
import {
  beatInstance,
  declareSet,
  joinInstance,
  leaveInstance,
  listDeclared,
  listInstances,
  listJobs,
} from './instances.js'
import {
  acquireLease,
  inspectLease,
  listLeases,
  lookForLease,
  releaseLease,
  renewLeases,
  resetLease,
} from './leases.js'
import { OpenFile } from './open-file.js'
import { pruneHistory } from './prune.js'
import { getRecord, listRecords, putRecord, removeRecord } from './records.js'
import { rescueRuns } from './rescue.js'
import { cancelRun, getRun, listRuns, retryRun, stampRuns } from './runs.js'
import { getSchedule } from './schedule-row.js'
import {
  applySchedules,
  listSchedules,
  pauseSchedule,
  putSchedules,
  removeSchedules,
  resumeSchedule,
  skippedRanges,
} from './schedules.js'
import { freeze, frozen, thaw } from './settings.js'
import { settleInSteps } from './settle.js'
import { type ParsedSqliteOptions, parseSqliteOptions, type SqliteOptions } from './sqlite-options.js'
import type { Tx } from './tx.js'
import type { Steps } from './write-queue.js'

export type { BetterSqliteHandle, NodeSqliteHandle, SqliteHandle } from './driver.js'
export { type MigrateOptions, migrateSqlite } from './migrate.js'
export type { SqliteOptions } from './sqlite-options.js'

export function sqlite(options: SqliteOptions): Store {
  const parsed = parseSqliteOptions(options)
  const open = new OpenFile(parsed)

  /** Operations that write in one transaction, short or long, that only look, and that take several transactions. */
  const writes =
    <Args extends readonly unknown[], Result>(work: (tx: Tx, ...args: Args) => Result) =>
    async (...args: Args): Promise<Result> =>
      (await open.file()).write((tx) => work(tx, ...args))
  const writesInSteps =
    <Args extends readonly unknown[], Result>(work: (tx: Tx, ...args: Args) => Steps<Result>) =>
    async (...args: Args): Promise<Result> =>
      (await open.file()).writeInSteps((tx) => work(tx, ...args))
  const reads =
    <Args extends readonly unknown[], Result>(work: (db: Connection, ...args: Args) => Result) =>
    async (...args: Args): Promise<Result> =>
      (await open.file()).read((db) => work(db, ...args))
  const readsNow =
    <Args extends readonly unknown[], Result>(work: (db: Connection, now: number, ...args: Args) => Result) =>
    async (...args: Args): Promise<Result> =>
      (await open.file()).read((db, now) => work(db, now, ...args))
  const steps =
    <Args extends readonly unknown[], Result>(work: (file: SqliteFile, ...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> =>
      work(await open.file(), ...args)

  const enqueue = writesInSteps(enqueueRuns)
  const acquire = writes(acquireLease)
  const look = readsNow(lookForLease)
  return {
    supports: { transactions: true, wakeups: false, durable: true, shared: true },
    schedules: {
      put: writesInSteps(putSchedules),
      get: reads(getSchedule),
      list: steps(listSchedules),
      remove: writesInSteps(removeSchedules),
      apply: writesInSteps(applySchedules),
      pause: writes(pauseSchedule),
      resume: writes(resumeSchedule),
      advance: steps((file, request) => advanceSchedules(file, open.definitions, request)),
      skips: reads(skippedRanges),
    },
    runs: {
      enqueue: async (runs, tx) => (tx === undefined ? enqueue(runs) : enqueueInside(await open.file(), runs, tx)),
      claim: steps(claimRuns),
      settle: steps(settleInSteps),
      get: reads(getRun),
      list: steps(listRuns),
      backlog: readsNow(readyBacklog),
      available: readsNow(isAvailable),
      cancel: writes(cancelRun),
      retry: writes(retryRun),
      stamp: writesInSteps(stampRuns),
      rescue: steps(rescueRuns),
      prune: steps(pruneHistory),
      transact: (attempt, work, signal) => open.transact(attempt, work, signal),
    },
    leases: {
      acquire: async (request) => (await look(request)) ?? acquire(request),
      renew: writesInSteps(renewLeases),
      release: writes(releaseLease),
      inspect: readsNow(inspectLease),
      list: readsNow(listLeases),
      reset: writes(resetLease),
    },
    instances: {
      join: writesInSteps(joinInstance),
      beat: writes(beatInstance),
      leave: writesInSteps(leaveInstance),
      list: reads(listInstances),
      jobs: reads(listJobs),
      declarations: reads(listDeclared),
      declare: writes(declareSet),
    },
    records: {
      put: writes(putRecord),
      get: readsNow(getRecord),
      list: readsNow(listRecords),
      remove: writes(removeRecord),
    },
    open: () => open.open(),
    close: () => open.close(),
    now: async () => (await open.file()).now(),
    subscribe: (listener) => open.listeners.subscribe(listener),
    ...(parsed.clock === systemClock ? { reopen: () => reopen(parsed) } : {}),
    freeze: writes(freeze),
    thaw: writes(thaw),
    frozen: reads(frozen),
    diagnose: reads(diagnose),
  }
}

/** The thread opens the file by its path, and waits for other writers no longer than a beat may take. */
function reopen({ path, database, busyMs }: ParsedSqliteOptions): StoreSource | NoSource {
  if (database !== undefined) {
    return { because: 'the SQLite store was given a handle, which belongs to this thread; pass the `path` of the file' }
  }
  const options: SqliteOptions = { path, busyMs }
  return { module: new URL('./beat-store.js', import.meta.url).href, options }
}
