/** The stores on which behaviours are tested, and how each gets virtual time. */
import type { Clock } from '../../src/core/clock.js'
import type { Store } from '../../src/core/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { seededRandom } from '../../src/testing/random.js'
import { temporaryFile } from '../stores/temporary-file.js'
import { withLateTimers } from './late-timers.js'
import { postgresSetup } from './postgres-setup.js'
import { redisClusterSetup, redisSetup } from './redis-setup.js'

/** A store's part of the test bed: a handle for each instance on shared data, and its virtual time. */
export interface StoreSetup {
  /** A new handle on the same data, as another process would open it. */
  handle(): Promise<Store> | Store
  readonly clock: Clock
  /** A clock for one more process. Its timers fire a little later than those of the others. */
  processClock?(): Clock
  elapse(ms: number): Promise<void>
  /** A longer poll interval for instances, on stores where each poll takes real time. */
  readonly poll?: string
  close(): Promise<void>
}

export interface StoreKind {
  readonly name: string
  open(): Promise<StoreSetup>
}

const memoryKind: StoreKind = {
  name: 'memory',
  open: async () => {
    const clock = manualClock(Date.UTC(2026, 0, 1))
    const store = memory({ clock })
    await store.open()
    return { handle: () => store, clock, elapse: (ms) => clock.advance(ms), close: async () => {} }
  },
}

/**
 * Every instance has its own connection. Within one process a transaction ends before another begins, so no instance
 * ever waits for the lock on the file. `test/stores` and `test/chaos` let processes contend in real time.
 */
const sqliteKind: StoreKind = {
  name: 'sqlite',
  open: async () => {
    const clock = manualClock(Date.UTC(2026, 0, 1))
    const file = temporaryFile()
    const handles: Store[] = []
    const handle = () => {
      const store = sqlite({ path: file.path, clock })
      handles.push(store)
      return store
    }
    const close = async () => {
      for (const store of handles) await store.close()
      await file.remove()
    }
    const random = seededRandom(1)
    const processClock = () => withLateTimers(clock, random)
    return { handle, clock, processClock, elapse: (ms) => clock.advance(ms), close }
  },
}

export const storeKinds: readonly StoreKind[] = [
  memoryKind,
  sqliteKind,
  { name: 'postgres', open: () => postgresSetup('postgres') },
  { name: 'redis', open: () => redisSetup() },
  { name: 'redis cluster', open: redisClusterSetup },
  { name: 'postgres through pgbouncer', open: () => postgresSetup('pgbouncer') },
]
