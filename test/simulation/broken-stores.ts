/** Stores with one deliberate fault each; the simulation must detect it. */
import type { Plan } from '../../src/core/schedules/plan.js'
import type { ScheduleDefinition } from '../../src/core/schedules/schedule.js'
import type { Planner, Store } from '../../src/core/store.js'

/** A fault, and the invariant whose violation reveals it. */
export type Breakage = readonly [name: string, violates: string, breaks: (store: Store) => Store]

export const BROKEN: readonly Breakage[] = [
  [
    'accepts settlements of stale attempts',
    'a run succeeds at most once',
    (store) => ({
      ...store,
      runs: {
        ...store.runs,
        settle: async (settlements) => {
          await store.runs.settle(settlements)
          return settlements.map(() => 'settled')
        },
      },
    }),
  ],
  [
    'does not advance the cursor',
    'no tick is duplicated',
    (store) => replanned(store, (plan, cursor) => ({ ...plan, cursor })),
  ],
  [
    'records every tick but one in a plan',
    'no tick is lost',
    (store) => replanned(store, (plan) => ({ ...plan, ticks: plan.ticks.slice(plan.ticks.length > 1 ? 1 : 0) })),
  ],
  [
    'forgets skipped ranges',
    'no tick is lost',
    (store) => ({ ...store, schedules: { ...store.schedules, skips: async () => [] } }),
  ],
  [
    'ignores which claims were answered',
    'every run ends',
    (store) => ({
      ...store,
      instances: {
        ...store.instances,
        beat: (request) => store.instances.beat({ ...request, claimsSettled: Number.NEGATIVE_INFINITY }),
      },
    }),
  ],
  [
    'never takes a run over',
    'every run ends',
    (store) => ({
      ...store,
      runs: { ...store.runs, rescue: async () => ({ rescued: 0, lost: 0 }) },
    }),
  ],
  [
    'declares instances dead before their lease expires',
    'handlers of a key that obey their signal do not overlap',
    (store) => ({
      ...store,
      instances: {
        ...store.instances,
        join: (info, leaseMs) => store.instances.join(info, leaseMs / 8),
        beat: (request) => store.instances.beat({ ...request, leaseMs: request.leaseMs / 8 }),
      },
    }),
  ],
  [
    'ignores unfinished runs',
    'ticks of a schedule that allows no overlap do not overlap',
    (store) => ({
      ...store,
      schedules: {
        ...store.schedules,
        advance: (request) =>
          store.schedules.advance({
            ...request,
            plan: (schedule, _, now, horizon) => request.plan(schedule, [], now, horizon),
          }),
      },
    }),
  ],
  [
    'gives a key to two runs',
    'committed effects of a key do not overlap',
    (store) => ({
      ...store,
      schedules: {
        ...store.schedules,
        put: (writes) =>
          store.schedules.put(writes.map((write) => ({ ...write, definition: widened(write.definition) }))),
      },
      runs: {
        ...store.runs,
        enqueue: (runs, tx) => store.runs.enqueue(runs.map(widened), tx),
        claim: async (request) => {
          const result = await store.runs.claim(request)
          return { ...result, runs: result.runs.map(narrowed) }
        },
      },
    }),
  ],
  ['gives one token to all attempts of a minute', 'tokens of a key only grow', coarseTokens],
  [
    'creates a second run for a dedupe key',
    'a dedupe key refuses while its run is unfinished',
    (store) => ({
      ...store,
      runs: {
        ...store.runs,
        enqueue: (runs, tx) =>
          store.runs.enqueue(
            runs.map(({ dedupe: _, ...run }) => run),
            tx,
          ),
      },
    }),
  ],
  [
    'starts runs while it is frozen',
    'nothing starts in a frozen store',
    (store) => ({ ...store, freeze: async () => {} }),
  ],
  [
    'restarts the timeline with every put',
    'no tick is lost',
    (store) => ({
      ...store,
      schedules: {
        ...store.schedules,
        put: async (writes) => {
          await store.schedules.remove(writes.map(({ id }) => id))
          return store.schedules.put(writes)
        },
      },
    }),
  ],
]

function replanned(store: Store, change: (plan: Plan, cursor: number) => Plan): Store {
  const changed =
    (plan: Planner): Planner =>
    (schedule, unfinished, now, horizon) =>
      change(plan(schedule, unfinished, now, horizon), schedule.cursor)
  const { schedules } = store
  return {
    ...store,
    schedules: { ...schedules, advance: (request) => schedules.advance({ ...request, plan: changed(request.plan) }) },
  }
}

const EXTRA = 1

function widened<Keyed extends Pick<ScheduleDefinition, 'key'>>(keyed: Keyed): Keyed {
  const { key } = keyed
  return key === undefined || key === 'unstamped' ? keyed : { ...keyed, key: { ...key, limit: key.limit + EXTRA } }
}

function narrowed<Keyed extends { readonly key?: { readonly limit: number } }>(keyed: Keyed): Keyed {
  return keyed.key === undefined ? keyed : { ...keyed, key: { ...keyed.key, limit: keyed.key.limit - EXTRA } }
}

const MINUTE_US = 60_000_000

/** Gives attempts that are claimed within one minute the same token, and maps it back to the real one. */
function coarseTokens(store: Store): Store {
  const real = new Map<string, number>()
  const tokenOf = (run: string, token: number) => real.get(`${run}@${token}`) ?? token
  return {
    ...store,
    runs: {
      ...store.runs,
      claim: async (request) => {
        const result = await store.runs.claim(request)
        const runs = result.runs.map((run) => {
          const token = Math.floor(run.token / MINUTE_US) * MINUTE_US
          real.set(`${run.id}@${token}`, run.token)
          return { ...run, token }
        })
        return { ...result, runs }
      },
      settle: (settlements) =>
        store.runs.settle(settlements.map((one) => ({ ...one, token: tokenOf(one.run, one.token) }))),
    },
    instances: {
      ...store.instances,
      beat: (request) => {
        const attempts = request.attempts.map(({ run, token }) => ({ run, token: tokenOf(run, token) }))
        return store.instances.beat({ ...request, attempts })
      },
    },
  }
}
