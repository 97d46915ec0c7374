import { setImmediate } from 'node:timers/promises'
import type { NewRun, Run } from '../../../src/core/runs/run.js'
import type { Unfinished } from '../../../src/core/schedules/plan.js'
import type { Planner } from '../../../src/core/store.js'
import { forgetRun, withdraw } from '../../../src/stores/memory/runs/transitions.js'
import { writeSchedule } from '../../../src/stores/memory/schedules/put.js'
import { forgetSchedule } from '../../../src/stores/memory/schedules/remove.js'
import { type BrokenStore, records, withoutHandOff } from './broken-store.js'

function again({ target, payload, priority, keep, schedule, tick }: Run): NewRun {
  const of = { ...(schedule === undefined ? {} : { schedule }), ...(tick === undefined ? {} : { tick }) }
  return { target, payload, priority, keep, origin: 'trigger', ...of }
}

function asUnfinished({ state, attempt, origin, tick }: Run): Unfinished {
  const at = origin === 'tick' && tick !== undefined ? { tick } : {}
  return { state: state === 'running' || state === 'waiting' ? state : 'ready', started: attempt > 0, ...at }
}

export const brokenSchedules: readonly BrokenStore[] = [
  {
    fault: 'records a tick twice',
    caughtBy: 'many advances at once record each tick once',
    breaks: (store, state) => ({
      schedules: {
        async advance(request) {
          const known = new Set(state.runs.keys())
          const result = await store.schedules.advance(request)
          const { items } = await store.runs.list({ limit: 1_000 })
          await store.runs.enqueue(items.filter(({ id }) => !known.has(id)).map(again))
          return result
        },
      },
    }),
  },
  {
    fault: 'writes plans that were made from outdated runs',
    caughtBy: 'skip: a trigger that minds overlap and a tick never run at once',
    breaks: (store) => ({
      schedules: {
        async advance(request) {
          const { items } = await store.runs.list({ limit: 1_000, states: ['ready', 'running', 'waiting'] })
          await setImmediate()
          const plan: Planner = ({ id, ...schedule }, _, now, horizon) =>
            request.plan(
              { id, ...schedule },
              items.filter((run) => run.schedule === id).map(asUnfinished),
              now,
              horizon,
            )
          return store.schedules.advance({ ...request, plan })
        },
      },
    }),
  },
  {
    fault: 'knows recorded ticks only from its history',
    caughtBy: 'a tick is not recorded again after its run has ended and been pruned',
    breaks: (store, state) => ({
      runs: {
        async prune(request) {
          const before = records(state).filter(({ origin }) => origin === 'tick')
          const result = await store.runs.prune(request)
          for (const { id, lane, tick = 0 } of before) {
            const schedule = state.schedules.get(lane?.id ?? '')?.schedule
            if (schedule === undefined || state.runs.has(id)) continue
            writeSchedule(state, { ...schedule, cursor: tick - 1, nextAt: tick, dueAt: tick })
          }
          return result
        },
      },
    }),
  },
  {
    fault: 'loses a tick that was recorded ahead when its schedule is paused',
    caughtBy: 'a pause takes back a tick recorded ahead, and a resume before its instant loses nothing',
    breaks: (store, state) => ({
      schedules: {
        async pause(id, note) {
          const before = state.schedules.get(id)?.schedule
          const paused = await store.schedules.pause(id, note)
          if (before === undefined || paused === undefined) return paused
          return writeSchedule(state, { ...paused, cursor: before.cursor })
        },
      },
    }),
  },
  {
    fault: 'writes unchanged schedules',
    caughtBy: 'putting an equal definition writes nothing',
    breaks: (store, state) => ({
      schedules: {
        async put(writes) {
          const results = await store.schedules.put(writes)
          for (const result of results) {
            if (result.outcome !== 'unchanged') continue
            state.lastVersion += 1
            writeSchedule(state, { ...result.schedule, version: state.lastVersion })
          }
          return results
        },
      },
    }),
  },
  {
    fault: 'restarts the timeline with every put',
    caughtBy: 'a put that leaves the timeline alone keeps anchor and cursor',
    breaks: (store, state) => ({
      schedules: {
        async put(writes) {
          const results = await store.schedules.put(writes)
          const now = state.clock.now()
          return results.map((result) => {
            if (result.outcome !== 'updated') return result
            return { ...result, schedule: writeSchedule(state, { ...result.schedule, anchor: now, cursor: now }) }
          })
        },
      },
    }),
  },
  {
    fault: 'ignores the version that a write is based on',
    caughtBy: 'a write based on an old version is refused and changes nothing',
    breaks: (store) => ({
      schedules: { put: (writes) => store.schedules.put(writes.map(({ id, definition }) => ({ id, definition }))) },
    }),
  },
  {
    fault: 'repeats versions of a removed schedule',
    caughtBy: 'a schedule that is created again has a new version',
    breaks: (store, state) => ({
      schedules: {
        async remove(...args) {
          const results = await store.schedules.remove(...args)
          state.lastVersion = 0
          return results
        },
      },
    }),
  },
  {
    fault: 'leaves the ticks of a removed schedule claimable',
    caughtBy: 'a removal skips due ticks, deletes future ones and forgets the schedule',
    breaks: (_, state) => ({
      schedules: {
        async remove(ids) {
          return ids.map((id) => {
            const record = state.schedules.get(id)
            if (record === undefined) return 'missing'
            forgetSchedule(state, record)
            return 'removed'
          })
        },
      },
    }),
  },
  {
    fault: 'never starts runs that wait for an earlier run of their schedule',
    caughtBy: 'queue-all: all wait, and run one by one, oldest first',
    breaks: (store, state) => ({
      runs: { settle: (settlements) => withoutHandOff(state, 'overlap', () => store.runs.settle(settlements)) },
    }),
  },
  {
    fault: 'hides unfinished runs from the planner',
    caughtBy: 'skip: a tick is skipped while an earlier run is unfinished',
    breaks: (store) => ({
      schedules: {
        advance: ({ plan, ...request }) =>
          store.schedules.advance({ ...request, plan: (schedule, _, ...rest) => plan(schedule, [], ...rest) }),
      },
    }),
  },
  {
    fault: 'prunes unfinished runs',
    caughtBy: 'ended runs beyond the age are pruned, unfinished ones are not',
    breaks: (store, state) => ({
      runs: {
        async prune(request) {
          for (const run of records(state).filter(({ state: now }) => now === 'ready')) {
            withdraw(state, run)
            forgetRun(state, run)
          }
          return store.runs.prune(request)
        },
      },
    }),
  },
  {
    fault: 'loses the skip of a tick whose history is not kept',
    caughtBy: 'with `keep: none`, a tick that is skipped at its start is still recorded as a skip',
    breaks: () => ({ schedules: { skips: async () => [] } }),
  },
]
