/** The store contract, one line an operation, over a state. */
import { Listeners } from '../../core/connection/listeners.js'
import type { Store } from '../../core/store.js'
import { beatInstance } from './instances/beat.js'
import { declareSet, listDeclared } from './instances/declarations.js'
import { joinInstance } from './instances/join.js'
import { leaveInstance } from './instances/leave.js'
import { listInstances, listJobs } from './instances/list.js'
import { acquireLease } from './locks/acquire.js'
import { inspectLease, listLeases } from './locks/list.js'
import { passOn } from './locks/pass-on.js'
import { releaseLease } from './locks/release.js'
import { renewLeases } from './locks/renew.js'
import { resetLease } from './locks/reset.js'
import { getRecord, listRecords, putRecord, removeRecord } from './records/records.js'
import { isAvailable } from './runs/available.js'
import { readyBacklog } from './runs/backlog.js'
import { cancelRun } from './runs/cancel.js'
import { claimRuns } from './runs/claim.js'
import { countRuns } from './runs/count.js'
import { enqueueRuns } from './runs/enqueue.js'
import { freeze, thaw } from './runs/freeze.js'
import { getRun, listRuns } from './runs/list.js'
import { pruneHistory } from './runs/prune.js'
import { rescueRuns } from './runs/rescue.js'
import { retryRun } from './runs/retry.js'
import { settleRuns } from './runs/settle.js'
import { stampRuns } from './runs/stamp.js'
import { ripen } from './runs/transitions.js'
import { advanceSchedules } from './schedules/advance.js'
import { applySchedules } from './schedules/apply.js'
import { countSchedules } from './schedules/count.js'
import { getSchedule, listSchedules } from './schedules/list.js'
import { pauseSchedule, resumeSchedule } from './schedules/pause.js'
import { putSchedules } from './schedules/put.js'
import { removeSchedules } from './schedules/remove.js'
import { skippedRanges } from './schedules/skips.js'
import type { MemoryState } from './schema/state.js'

export function storeOn(state: MemoryState): Store {
  const { clock, wakes } = state
  const listeners = new Listeners()

  /** Every operation has one time for all of its work, and ends by handing what it has freed to the waiters. */
  function op<Args extends readonly unknown[], Result>(work: (state: MemoryState, ...args: Args) => Result) {
    return async (...args: Args): Promise<Result> => {
      state.now = clock.now()
      ripen(state)
      const result = work(state, ...args)
      passOn(state)
      listeners.announce(wakes)
      wakes.clear()
      return result
    }
  }

  return {
    supports: { transactions: false, wakeups: true, durable: false, shared: false },
    schedules: {
      put: op(putSchedules),
      get: op(getSchedule),
      count: op(countSchedules),
      list: op(listSchedules),
      remove: op(removeSchedules),
      apply: op(applySchedules),
      pause: op(pauseSchedule),
      resume: op(resumeSchedule),
      advance: op(advanceSchedules),
      skips: op(skippedRanges),
    },
    runs: {
      enqueue: op(enqueueRuns),
      claim: op(claimRuns),
      settle: op(settleRuns),
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
      acquire: op(acquireLease),
      renew: op(renewLeases),
      release: op(releaseLease),
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
    open: async () => {},
    close: async () => {},
    now: async () => clock.now(),
    subscribe: listeners.subscribe,
    freeze: op(freeze),
    thaw: op(thaw),
    frozen: async () => state.frozen,
  }
}
