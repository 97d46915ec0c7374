/** The operations of the Redis store, over a server. */
import type { Store } from '../../core/store.js'
import { script } from './connection/script.js'
import type { Server } from './connection/server.js'
import { diagnose } from './diagnose.js'
import {
  beatInstance,
  declareSet,
  joinInstance,
  leaveInstance,
  listDeclared,
  listInstances,
  listJobs,
} from './instances/instances.js'
import { inspectLease, listLeases } from './locks/list.js'
import { LockCalls } from './locks/lock-calls.js'
import { renewLeases, resetLease } from './locks/renew.js'
import { getRecord, listRecords, putRecord, removeRecord } from './records/records.js'
import { readyBacklog } from './runs/backlog.js'
import { claimRuns } from './runs/claim.js'
import { isAvailable } from './runs/enqueue.js'
import { EnqueueCalls } from './runs/enqueue-calls.js'
import { freezeStore, frozenSince, thawStore } from './runs/freeze.js'
import { cancelRun, getRun, listRuns, retryRun, stampRuns } from './runs/list.js'
import { pruneHistory } from './runs/prune.js'
import { rescueRuns } from './runs/rescue.js'
import { settleRuns } from './runs/settle.js'
import { advanceSchedules } from './schedules/advance.js'
import { Definitions } from './schedules/definitions.js'
import { getSchedule, listSchedules, skippedRanges } from './schedules/list.js'
import { applySchedules, pauseSchedule, removeSchedules, resumeSchedule } from './schedules/put.js'
import { PutCalls } from './schedules/put-calls.js'

const NOW = script('return int(now)')

/** All but opening and closing, which are the handle's. */
export function operationsOn(server: Server): Omit<Store, 'open' | 'close' | 'subscribe' | 'supports'> {
  const definitions = new Definitions()
  const locks = new LockCalls(server)
  const puts = new PutCalls(server)
  const enqueues = new EnqueueCalls(server)
  const { time } = server

  /** Answers tell the store's time, which tokens go by. */
  async function heard<Result extends { readonly now: number }>(answer: Promise<Result>): Promise<Result> {
    const result = await answer
    time.heard(result.now)
    return result
  }

  function op<Args extends readonly unknown[], Result>(work: (server: Server, ...args: Args) => Promise<Result>) {
    return (...args: Args): Promise<Result> => work(server, ...args)
  }

  return {
    schedules: {
      put: (writes) => puts.put(writes),
      get: op(getSchedule),
      list: op(listSchedules),
      remove: op(removeSchedules),
      apply: op(applySchedules),
      pause: op(pauseSchedule),
      resume: op(resumeSchedule),
      advance: (request) => heard(advanceSchedules(server, definitions, request)),
      skips: op(skippedRanges),
    },
    runs: {
      enqueue: (runs, tx) => enqueues.enqueue(runs, tx),
      claim: (request) => heard(claimRuns(server, { ...request, floor: time.floor(request.floor) })),
      settle: op(settleRuns),
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
      acquire: (request) => locks.acquire(request),
      renew: op(renewLeases),
      release: (request) => locks.release(request),
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
    now: async () => Number(await server.read(NOW, 0)),
    freeze: op(freezeStore),
    thaw: op(thawStore),
    frozen: op(frozenSince),
    diagnose: op(diagnose),
  }
}
