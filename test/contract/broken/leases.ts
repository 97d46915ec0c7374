import { type BrokenStore, records } from './broken-store.js'

export const brokenLeases: readonly BrokenStore[] = [
  {
    fault: 'takes tokens from the clock alone',
    caughtBy: 'tokens grow with every new holder, also within one instant, and never fall below the floor',
    breaks: (store, state) => ({
      leases: {
        async acquire(request) {
          const name = state.names.get(request.name)
          if (name !== undefined) name.lastToken = 0
          return store.leases.acquire({ ...request, floor: 0 })
        },
      },
    }),
  },
  {
    fault: 'renews a lease that another holder took',
    caughtBy: 'an old holder can neither renew, release nor extend its successor’s lease',
    breaks: (store) => ({
      leases: {
        async renew(requests) {
          const renewed = await store.leases.renew(requests)
          return requests.map((request, at) => renewed[at] ?? { ...request, acquiredAt: 0, expiresAt: 0 })
        },
      },
    }),
  },
  {
    fault: 'lets another holder release',
    caughtBy: 'only the holder releases, once',
    breaks: (store) => ({
      leases: {
        async release(request) {
          const [holder] = await store.leases.inspect(request.name)
          return store.leases.release({ ...request, holder: holder?.holder ?? request.holder })
        },
      },
    }),
  },
  {
    fault: 'accepts a release although another holder had the lease in between',
    caughtBy: 'an expired lease is still its holder’s to release while no other holder has acquired it',
    breaks: (store) => ({
      leases: { release: async (request) => (await store.leases.release(request)) || true },
    }),
  },
  {
    fault: 'loses positions in the waiter queue',
    caughtBy: 'a release hands the lease to the oldest waiter, which has it when it asks again',
    breaks: (store) => ({
      leases: { acquire: ({ waitMs: _, ...request }) => store.leases.acquire(request) },
    }),
  },
  {
    fault: 'hands a lease over for its full TTL, even to a dead waiter',
    caughtBy: 'waiters that died hold up a live one for no longer than one place lasts, however many they are',
    breaks: (store) => ({
      leases: {
        async release(request) {
          const released = await store.leases.release(request)
          const held = await store.leases.inspect(request.name)
          await store.leases.renew(held.map((lease) => ({ ...lease, ttlMs: 600_000 })))
          return released
        },
      },
    }),
  },
  {
    fault: 'waits for each dead waiter in turn',
    caughtBy: 'waiters that died hold up a live one for no longer than one place lasts, however many they are',
    breaks: (store, state) => ({
      leases: {
        async acquire(request) {
          for (const name of state.names.values())
            for (const waiter of name.waiters.values())
              name.waiters.set(waiter.holder, { ...waiter, until: state.clock.now() + 600 })
          return store.leases.acquire(request)
        },
      },
    }),
  },
  {
    fault: 'ignores the minimum hold',
    caughtBy: 'a lease released before its minimum hold stays taken until then, and cannot be renewed',
    breaks: (store) => ({
      leases: { release: ({ minHoldMs: _, ...request }) => store.leases.release(request) },
    }),
  },
  {
    fault: 'accepts the heartbeat of an instance that was declared dead',
    caughtBy: 'every beat of an instance that was declared dead is refused',
    breaks: (store) => ({
      instances: { beat: async (request) => ({ ...(await store.instances.beat(request)), alive: true, lost: [] }) },
    }),
  },
  {
    fault: 'forgets runs of a claim whose reply was lost',
    caughtBy: 'runs of an answered claim that the beat does not list are ready again',
    breaks: (store) => ({
      instances: { beat: (request) => store.instances.beat({ ...request, claimsSettled: -1 }) },
    }),
  },
  {
    fault: 'never gives up taking a run over',
    caughtBy: 'a run fails as LOST after too many takeovers',
    breaks: (store, state) => ({
      runs: {
        async rescue(limit) {
          for (const run of records(state)) run.takeovers = 0
          return store.runs.rescue(limit)
        },
      },
    }),
  },
  {
    fault: 'charges a takeover to an instance that leaves',
    caughtBy: 'runs of an instance that leaves are ready at once, and no takeover is counted',
    breaks: (store, state) => ({
      instances: {
        async leave(id) {
          const running = records(state).filter((run) => run.owner?.info.id === id)
          await store.instances.leave(id)
          for (const run of running) run.orphaned = true
        },
      },
    }),
  },
]
