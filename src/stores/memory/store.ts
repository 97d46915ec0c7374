/** The operations of the memory store on its state. */
import { tell } from '../../core/hint.js'
import type { Store, WakeListener } from '../../core/store.js'
import { advanceSchedules } from './advance.js'
import { readyBacklog } from './backlog.js'
import { claimRuns } from './claim.js'
import { enqueueRuns, isAvailable } from './enqueue.js'
import {
  beatInstance,
  declareSet,
  joinInstance,
  leaveInstance,
  listDeclared,
  listInstances,
  listJobs,
} from './instances.js'
import { acquireLease, inspectLease, listLeases, releaseLease, renewLeases, resetLease } from './leases.js'
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
import type { MemoryState } from './state.js'

export function storeOn(state: MemoryState): Store {
  const { clock } = state
  const { subscribe, announce } = listeners(state)

  /** Wraps an operation: all its work in one step, then the hints. */
  function op<Args extends readonly unknown[], Result>(work: (state: MemoryState, ...args: Args) => Result) {
    return async (...args: Args): Promise<Result> => {
      const result = work(state, ...args)
      announce()
      return result
    }
  }

  return {
    supports: { transactions: false, wakeups: true, durable: false, shared: false },
    schedules: {
      put: op(putSchedules),
      get: op(getSchedule),
      list: op(listSchedules),
      remove: op(removeSchedules),
      apply: op(applySchedules),
      pause: op(pauseSchedule),
      resume: op(resumeSchedule),
      advance: op(advanceSchedules),
      skips: op(skippedRanges),
    },
    runs: {
      enqueue: op((_, runs: Parameters<typeof enqueueRuns>[1], tx?: unknown) => enqueueRuns(state, runs, tx)),
      claim: op(claimRuns),
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
    subscribe,
    freeze: op((_, note: string | undefined) => {
      state.frozen ??= Object.freeze({ at: clock.now(), ...(note === undefined ? {} : { note }) })
    }),
    thaw: op(() => {
      state.frozen = undefined
      state.wakes.add('runs')
    }),
    frozen: async () => state.frozen,
  }
}

/** Sends hints after the operation, once for all changes of one event loop turn. */
function listeners({ wakes }: MemoryState) {
  const listening = new Set<WakeListener>()
  let pending = false

  function flush(): void {
    pending = false
    const hints = [...wakes]
    wakes.clear()
    for (const listener of [...listening]) for (const hint of hints) tell(listener, hint)
  }

  return {
    announce(): void {
      if (pending || wakes.size === 0) return
      pending = true
      queueMicrotask(flush)
    },
    subscribe(listener: WakeListener): () => void {
      // Each subscription is separate, even with the same function.
      const own: WakeListener = (wake, holder) => listener(wake, holder)
      listening.add(own)
      return () => {
        listening.delete(own)
      }
    },
  }
}
