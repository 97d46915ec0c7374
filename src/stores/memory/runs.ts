import { checkPageLimit } from '../../core/page-limit.js'
import { isFinished, type Run } from '../../core/run.js'
import type { CancelResult, Page, RetryResult, RunQuery, Stamp } from '../../core/store.js'
import { dedupeOf, openDedupe } from './dedupe.js'
import { handOn } from './names.js'
import { makeReady } from './run-changes.js'
import { endRun, requestCancel } from './run-endings.js'
import { frozenCopy, type RunRecord, toRun } from './run-record.js'
import type { MemoryState } from './state.js'

export function getRun(state: MemoryState, id: string): Run | undefined {
  const run = state.runs.get(id)
  return run === undefined ? undefined : toRun(run)
}

export function cancelRun(state: MemoryState, id: string): CancelResult {
  const run = state.runs.get(id)
  if (run === undefined) return 'missing'
  if (isFinished(run)) return 'finished'
  if (run.state === 'running') {
    requestCancel(state, run)
    return 'requested'
  }
  const now = state.clock.now()
  endRun(state, run, 'cancelled', now)
  handOn(state, now)
  return 'cancelled'
}

export function retryRun(state: MemoryState, id: string): RetryResult {
  const run = state.runs.get(id)
  if (run === undefined) return 'missing'
  if (!isFinished(run) || run.state === 'succeeded') return 'refused'
  const now = state.clock.now()
  const same = run.dedupe === undefined ? undefined : dedupeOf(state, run.target, run.dedupe, now)
  if (same !== undefined && same.run !== run.id) return 'refused'
  reopen(state, run, now)
  handOn(state, now)
  return 'ready'
}

function reopen(state: MemoryState, run: RunRecord, now: number): void {
  if (run.ended !== undefined) state.ended.remove(run.ended)
  run.ended = undefined
  run.finishedAt = undefined
  run.reason = undefined
  run.error = undefined
  run.result = undefined
  run.cancelRequested = false
  run.rescued = false
  run.failures = 0
  run.takeovers = 0
  run.startBy = undefined
  run.readyAt = now
  openDedupe(state, run)
  makeReady(state, run, now)
}

export function stampRuns(state: MemoryState, stamps: readonly Stamp[]): void {
  const now = state.clock.now()
  for (const { run: id, key } of stamps) {
    const run = state.runs.get(id)
    if (run === undefined || !run.unstamped || isFinished(run)) continue
    state.stampless.delete(run)
    run.unstamped = false
    run.key = frozenCopy(key)
    if (run.waitsFor === 'stamp') makeReady(state, run, now)
  }
  handOn(state, now)
}

export function listRuns(state: MemoryState, query: RunQuery): Page<Run> {
  checkPageLimit(query.limit)
  const items: RunRecord[] = []
  let [looked, last] = [0, '']
  for (const run of candidates(state, query)) {
    if (looked === query.look) return { items: items.map(toRun), next: last }
    ;[looked, last] = [looked + 1, run.id]
    if (!matches(run, query)) continue
    if (items.length === query.limit) return { items: items.map(toRun), next: items.at(-1)?.id ?? '' }
    items.push(run)
  }
  return { items: items.map(toRun) }
}

/** Newest first, from the smallest index that contains all requested runs. */
function candidates(state: MemoryState, { schedule, waitsFor, after }: RunQuery): Iterable<RunRecord> {
  const before = after === undefined ? Number.POSITIVE_INFINITY : Number(after.slice(1))
  const some =
    waitsFor === 'stamp'
      ? state.stampless
      : schedule === undefined
        ? undefined
        : state.lanes.get(schedule)?.runs.values()
  if (some === undefined && schedule === undefined) return newestFirst(state, after, before)
  return [...(some ?? [])].filter((run) => run.order < before).sort((one, other) => other.order - one.order)
}

function* newestFirst(state: MemoryState, after: string | undefined, before: number): Iterable<RunRecord> {
  let link = (after === undefined ? undefined : state.runs.get(after)?.created) ?? state.created.newest
  for (; link !== undefined; link = link.older) if (link.item.order < before) yield link.item
}

function matches(run: RunRecord, query: RunQuery): boolean {
  const { target } = run
  return (
    (query.schedule === undefined || run.lane?.id === query.schedule) &&
    (query.tick === undefined || run.tick === query.tick) &&
    (query.job === undefined || ('job' in target && target.job === query.job)) &&
    (query.sink === undefined || ('sink' in target && target.sink === query.sink)) &&
    (query.key === undefined || run.key?.name === query.key) &&
    (query.states === undefined || query.states.includes(run.state)) &&
    (query.waitsFor === undefined || run.waitsFor === query.waitsFor)
  )
}
