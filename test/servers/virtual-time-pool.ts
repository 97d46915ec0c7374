/** A pool that sets the database's clock to the virtual time before each statement. */
import type { Clock } from '../../src/core/clock.js'
import type { PgClient, PgPool } from '../../src/stores/postgres/index.js'
import type { TestDatabase } from './test-database.js'
import { Traffic } from './traffic.js'

/** Returns a function that sets the database's clock to the virtual time, unless it shows that already. */
export function clockSync(clock: Clock, database: TestDatabase): () => Promise<unknown> {
  let sent: number | undefined
  let sending: Promise<unknown> = Promise.resolve()
  return () => {
    if (sent !== clock.now()) {
      sent = clock.now()
      sending = database.setClock(sent)
    }
    return sending
  }
}

/**
 * Each statement sees the virtual time at which it was sent. That is also the time of its answer if time waits for
 * `traffic`.
 */
export function virtualTimePool(pool: PgPool, syncClock: () => Promise<unknown>, traffic = new Traffic()): PgPool {
  return {
    connect: () => traffic.during(async () => virtualTimeClient(await pool.connect(), syncClock, traffic)),
    // Tests share the pool, which has a listener already.
    on: () => {},
    removeListener: () => {},
    end: async () => {},
  }
}

function virtualTimeClient(client: PgClient, syncClock: () => Promise<unknown>, traffic: Traffic): PgClient {
  const query: PgClient['query'] = (...args) => traffic.during(() => syncClock().then(() => client.query(...args)))
  return new Proxy(client, {
    get(target, name) {
      const member: unknown = name === 'query' ? query : Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
