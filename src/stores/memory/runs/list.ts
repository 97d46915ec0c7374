import { checkPageLimit } from '../../../core/checks/page-limit.js'
import type { Run } from '../../../core/runs/run.js'
import { numberAfter } from '../../../core/runs/run-id.js'
import { matchesRun } from '../../../core/runs/run-query.js'
import type { Page, RunQuery } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import { type RunRecord, toRun } from './run-codec.js'

export function getRun(state: MemoryState, id: string): Run | undefined {
  const run = state.runs.get(id)
  return run === undefined ? undefined : toRun(run)
}

export function listRuns(state: MemoryState, query: RunQuery): Page<Run> {
  checkPageLimit(query.limit)
  const items: RunRecord[] = []
  let [looked, last] = [0, '']
  for (const run of candidates(state, query)) {
    if (looked === query.look) return { items: items.map(toRun), next: last }
    ;[looked, last] = [looked + 1, run.id]
    if (!matchesRun(run, run.lane?.id, query)) continue
    if (items.length === query.limit) return { items: items.map(toRun), next: items.at(-1)?.id ?? '' }
    items.push(run)
  }
  return { items: items.map(toRun) }
}

/** Newest first, from the smallest index that contains all requested runs. */
function candidates(state: MemoryState, { schedule, waitsFor, states, after }: RunQuery): Iterable<RunRecord> {
  const before = after === undefined ? Number.POSITIVE_INFINITY : numberAfter(after)
  const some = waitsFor === 'stamp' ? state.stampless : schedule === undefined ? undefined : runsOf(state, schedule)
  if (some === undefined) return state.runLog.newestFirst(before, waitsFor === undefined ? states : ['waiting'])
  return [...some].filter(({ order }) => order < before).sort((one, other) => other.order - one.order)
}

function runsOf(state: MemoryState, schedule: string): Iterable<RunRecord> {
  return state.lanes.get(schedule)?.runs.values() ?? []
}
