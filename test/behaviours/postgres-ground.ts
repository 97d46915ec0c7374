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
import { counted } from './counted-store.js'
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
