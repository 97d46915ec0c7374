/** The operations of the Redis store: the table of contents of this folder. */
import { randomUUID } from 'node:crypto'
import type { Store } from '../../core/store.js'
import { luaScript, number } from './connection/lua-script.js'
import nowSource from './connection/now.lua'
import type { Server } from './connection/server.js'
import { diagnose } from './diagnose.js'
import { beatInstance } from './instances/beat.js'
import { declareSet, listDeclared } from './instances/declarations.js'
import { joinInstance } from './instances/join.js'
import { leaveInstance } from './instances/leave.js'
import { listInstances, listJobs } from './instances/list.js'
import { acquisitions } from './locks/acquire.js'
import { inspectLease, listLeases } from './locks/list.js'
import { releases } from './locks/release.js'
import { renewLeases } from './locks/renew.js'
import { resetLease } from './locks/reset.js'
import { getRecord, listRecords, putRecord, removeRecord } from './records/records.js'
import { isAvailable } from './runs/available.js'
import { readyBacklog } from './runs/backlog.js'
import { cancelRun } from './runs/cancel.js'
import { claimRuns } from './runs/claim.js'
import { countRuns } from './runs/count.js'
import { enqueues } from './runs/enqueue.js'
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
import { getSchedule, listSchedules } from './schedules/list.js'
import { pauseSchedule, resumeSchedule } from './schedules/pause.js'
import { puts } from './schedules/put.js'
import { removeSchedules } from './schedules/remove.js'
import { skippedRanges } from './schedules/skips.js'

const nowScript = luaScript({
  name: 'connection/now',
  source: nowSource,
  takes: {},
  gives: { now: number },
})

/** All operations except opening, closing and subscribing, which belong to the handle. */
export function operationsOn(server: Server): Omit<Store, 'open' | 'close' | 'subscribe' | 'supports'> {
  const planner = randomUUID()
  const { time } = server

  /** Notes the store's time in the answer, because new tokens must not be lower than it. */
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
      put: puts(server),
      get: op(getSchedule),
      count: op(countSchedules),
      list: op(listSchedules),
      remove: op(removeSchedules),
      apply: op(applySchedules),
      pause: op(pauseSchedule),
      resume: op(resumeSchedule),
      advance: (request) => heard(advanceSchedules(server, planner, request)),
      skips: op(skippedRanges),
    },
    runs: {
      enqueue: enqueues(server),
      claim: (request) => heard(claimRuns(server, { ...request, floor: time.floor(request.floor) })),
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
      acquire: acquisitions(server),
      renew: op(renewLeases),
      release: releases(server),
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
    now: async () => (await server.call(nowScript, 0, {})).now,
    freeze: op(freezeStore),
    thaw: op(thawStore),
    frozen: op(frozenSince),
    diagnose: op(diagnose),
  }
}
