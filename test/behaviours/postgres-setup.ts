/**
 * Virtual time on a real server. There are two clocks: the instances' clock, which the test advances, and the
 * database's, which is a function of the schema. Instances and database always see the same time:
 *
 * - Virtual time stands still while anything is in flight to the server: a store call with all its retries, a
 *   statement, a hint. So every call is executed and answered at the instant at which it was made.
 * - The first statement of a new instant sets the database's clock; other statements of that instant wait for it.
 *
 * Calls that several instances make at one instant are really concurrent, each over its own connection: they race, wait
 * for each other's rows and lose as in production. Hints arrive when the server sends them.
 */
import type { Store } from '../../src/core/store.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { type Route, testDatabase } from '../servers/test-database.js'
import { Traffic } from '../servers/traffic.js'
import { clockSync, virtualTimePool } from '../servers/virtual-time-pool.js'
import { countInFlight } from './counted-store.js'
import type { StoreSetup } from './store-kinds.js'

export async function postgresSetup(route: Route): Promise<StoreSetup> {
  const database = await testDatabase(route)
  const { direct, schema } = database
  const traffic = new Traffic()
  const clock = manualClock(Date.UTC(2026, 0, 1), traffic.rest)
  const syncClock = clockSync(clock, database)
  const handles: Store[] = []
  return {
    handle: () => {
      const store = postgres({ pool: virtualTimePool(database.pool(), syncClock, traffic), direct, schema })
      handles.push(store)
      return countInFlight(store, traffic)
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
