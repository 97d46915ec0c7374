/**
 * Records the operations that the store actually executed. It is below all faults: an operation whose reply is lost is
 * in the record, an operation that never arrived is not. The memory store executes a call synchronously, so the
 * position in the order is taken when the call is made.
 */
import { isFinished, type NewRun, type Run } from '../../src/core/runs/run.js'
import type { EnqueueResult, RunStore, ScheduleStore, Settlement, SettleResult, Store } from '../../src/core/store.js'
import type { Chronicle, Position } from './chronicle.js'
import { keepPruned } from './pruned-history.js'

export function recordedStore(store: Store, chronicle: Chronicle): Store {
  return {
    ...store,
    schedules: recordedSchedules(store.schedules, chronicle),
    runs: recordedRuns(store, chronicle),
    freeze: (note) => {
      chronicle.write({ kind: 'frozen' })
      return store.freeze(note)
    },
    thaw: () => {
      chronicle.write({ kind: 'thawed' })
      return store.thaw()
    },
  }
}

function recordedSchedules(schedules: ScheduleStore, chronicle: Chronicle): ScheduleStore {
  return {
    ...schedules,
    put: async (writes) => {
      const position = chronicle.nextPosition()
      const results = await schedules.put(writes)
      for (const [at, { id, definition }] of writes.entries()) {
        const result = results[at]
        if (result?.outcome !== 'created' && result?.outcome !== 'updated') continue
        const { cursor } = result.schedule
        chronicle.write({ kind: 'put', schedule: id, outcome: result.outcome, definition, cursor }, position)
      }
      return results
    },
    pause: async (id, note) => {
      const position = chronicle.nextPosition()
      const schedule = await schedules.pause(id, note)
      if (schedule !== undefined) chronicle.write({ kind: 'paused', schedule: id }, position)
      return schedule
    },
    resume: async (id) => {
      const position = chronicle.nextPosition()
      const schedule = await schedules.resume(id)
      if (schedule !== undefined) chronicle.write({ kind: 'resumed', schedule: id }, position)
      return schedule
    },
    remove: async (ids, ifVersion) => {
      const position = chronicle.nextPosition()
      const results = await schedules.remove(ids, ifVersion)
      const removed = ids.filter((_, at) => results[at] === 'removed')
      for (const id of removed) chronicle.write({ kind: 'removed', schedule: id }, position)
      return results
    },
  }
}

function recordedRuns(store: Store, chronicle: Chronicle): RunStore {
  const { runs } = store
  const claimed = new Set<string>()
  const settled = new Set<string>()
  const dedupes = new Map<string, string>()

  /** The unfinished run that has the same dedupe key, so that the store must refuse the new one. */
  async function rivalOf({ target, dedupe }: NewRun): Promise<Run | undefined> {
    const known = dedupe === undefined ? undefined : dedupes.get(JSON.stringify([target, dedupe]))
    const run = known === undefined ? undefined : await runs.get(known)
    return run === undefined || isFinished(run) ? undefined : run
  }

  function noteEnqueued(
    run: NewRun,
    result: EnqueueResult | undefined,
    rival: Run | undefined,
    position: Position,
  ): void {
    if (result?.outcome !== 'enqueued') return
    const { target, origin, keep, key, dedupe, schedule } = run
    const dueAt = Math.max(run.readyAt ?? position.at + (run.delayMs ?? 0), position.at)
    const fact = { kind: 'enqueued' as const, run: result.run, target, origin, keep, dueAt, schedule }
    chronicle.write(key === undefined || key === 'unstamped' ? fact : { ...fact, key }, position)
    if (dedupe !== undefined) dedupes.set(JSON.stringify([target, dedupe]), result.run)
    if (rival === undefined) return
    const text = `${result.run} was enqueued with the key "${dedupe}", which ${rival.id} (${rival.state}) has`
    chronicle.violated('a dedupe key refuses while its run is unfinished', text, result.run, rival.id)
  }

  function noteClaimed(run: Run, position: Position): void {
    const attempt = `${run.id}@${run.token}`
    if (claimed.has(attempt)) return
    claimed.add(attempt)
    if (run.attempt === 1 && (run.startBy ?? position.at) < position.at) {
      chronicle.violated('nothing starts too late', `${run.id} was to start by ${run.startBy}`, run.id)
    }
    const { id, origin, schedule, tick, key, token = 0, attempt: number, instance } = run
    chronicle.write(
      { kind: 'claimed', run: id, origin, schedule, tick, key, token, attempt: number, instance },
      position,
    )
  }

  /** A repeated settlement with the same token is not recorded again. */
  function noteSettled(
    { run, token, outcome }: Settlement,
    result: SettleResult | undefined,
    position: Position,
  ): void {
    if (settled.has(`${run}@${token}`)) return
    if (result === 'settled') settled.add(`${run}@${token}`)
    chronicle.write({ kind: result === 'settled' ? 'settled' : 'refused', run, token, outcome: outcome.kind }, position)
  }

  function noteTouched(id: string, text: string): void {
    chronicle.note(text)
    chronicle.touched.add(id)
  }

  return {
    ...runs,
    enqueue: async (news, tx) => {
      const position = chronicle.nextPosition()
      const rivals = news.map(rivalOf)
      const results = await runs.enqueue(news, tx)
      for (const [at, run] of news.entries()) noteEnqueued(run, results[at], await rivals[at], position)
      return results
    },
    claim: async (request) => {
      const position = chronicle.nextPosition()
      const result = await runs.claim(request)
      for (const run of result.runs) noteClaimed(run, position)
      return result
    },
    settle: async (settlements) => {
      const position = chronicle.nextPosition()
      const results = await runs.settle(settlements)
      for (const [at, settlement] of settlements.entries()) noteSettled(settlement, results[at], position)
      return results
    },
    cancel: async (id) => {
      const [run, result] = await Promise.all([runs.get(id), runs.cancel(id)])
      if (result === 'cancelled' && run !== undefined) chronicle.cancelled.push(run)
      noteTouched(id, `cancel ${id}: ${result}`)
      return result
    },
    retry: async (id) => {
      const result = await runs.retry(id)
      noteTouched(id, `retry ${id}: ${result}`)
      return result
    },
    prune: (request) => keepPruned(store, chronicle, () => runs.prune(request)),
  }
}
