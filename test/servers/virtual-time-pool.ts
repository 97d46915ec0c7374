/** A pool whose statements find the database's clock in step with a virtual clock. */
import type { Clock } from '../../src/core/clock.js'
import type { PgClient, PgPool } from '../../src/stores/postgres/index.js'
import type { TestDatabase } from './test-database.js'
import { Traffic } from './traffic.js'

/** Returns what moves the database's clock to the virtual time, if that has moved. */
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

/** Each statement sees the virtual time of its sending; and of its answer, where virtual time waits for `traffic`. */
export function virtualTimePool(pool: PgPool, syncClock: () => Promise<unknown>, traffic = new Traffic()): PgPool {
  return {
    connect: () => traffic.during(async () => virtualTimeClient(await pool.connect(), syncClock, traffic)),
    // The pool is shared by tests, and has a listener already.
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
