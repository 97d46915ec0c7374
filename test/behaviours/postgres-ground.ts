/**
 * Virtual time on a real server. There are two clocks: the instances', which is turned by hand, and the database's, which
 * is a function of the schema. They never differ while anybody looks:
 *
 * - Time stands still while anything is under way to the server: a call of the store with all its tries, a statement, a
 *   hint that is sent. So whatever is asked at an instant is also done and answered at that instant.
 * - Before the first statement of a new instant the database's clock is set to it; others of that instant wait for that.
 *
 * What is asked at one instant by several instances really is on its way at once, each over its own connections: they
 * race, wait for each other's rows and lose as they would in production. Hints come when the server sends them.
 */
import type { Store } from '../../src/core/store.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { testDatabase, type Way } from '../servers/test-database.js'
import { inTimeWith, timedPool } from '../servers/timed-pool.js'
import { Traffic } from '../servers/traffic.js'
import type { Ground } from './store-kinds.js'

export async function postgresGround(way: Way): Promise<Ground> {
  const database = await testDatabase(way)
  const { direct, schema } = database
  const traffic = new Traffic()
  const clock = manualClock(Date.UTC(2026, 0, 1), traffic.rest)
  const inTime = inTimeWith(clock, database)
  const handles: Store[] = []
  return {
    handle: () => {
      const store = postgres({ pool: timedPool(database.pool(), inTime, traffic), direct, schema })
      handles.push(store)
      return counted(store, traffic)
    },
    clock,
    poll: '200ms',
    elapse: (ms) => clock.advance(ms),
    close: async () => {
      await traffic.rest()
      await Promise.all(handles.map((store) => store.close()))
      await traffic.rest()
      await database.close()
    },
  }
}

/** A call is under way until it is answered, also while it waits to be tried again. */
function counted(store: Store, traffic: Traffic): Store {
  const part = <Part extends object>(area: Part): Part =>
    new Proxy(area, {
      get(target, name, receiver) {
        const member: unknown = Reflect.get(target, name, receiver)
        // A transaction may take as long as its handler likes, also in virtual time.
        if (typeof member !== 'function' || name === 'transact') return member
        return (...args: unknown[]) => traffic.during(async () => Reflect.apply(member, target, args) as unknown)
      },
    })
  return {
    supports: store.supports,
    schedules: part(store.schedules),
    runs: part(store.runs),
    leases: part(store.leases),
    instances: part(store.instances),
    subscribe: store.subscribe,
    open: () => traffic.during(() => store.open()),
    close: () => traffic.during(() => store.close()),
    now: () => traffic.during(() => store.now()),
    freeze: (note) => traffic.during(() => store.freeze(note)),
    thaw: () => traffic.during(() => store.thaw()),
    frozen: () => traffic.during(() => store.frozen()),
  }
}
