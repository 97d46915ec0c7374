/** Statements that find the database's clock where a clock that is turned by hand stands. */
import type { Clock } from '../../src/core/clock.js'
import type { PgClient, PgPool } from '../../src/stores/postgres/index.js'
import type { TestDatabase } from './test-database.js'
import { Traffic } from './traffic.js'

/** Sets the database's clock to another whenever that has moved; resolves when it is. */
export function inTimeWith(clock: Clock, database: TestDatabase): () => Promise<unknown> {
  let told: number | undefined
  let telling: Promise<unknown> = Promise.resolve()
  return () => {
    if (told !== clock.now()) {
      told = clock.now()
      telling = database.setClock(told)
    }
    return telling
  }
}

/** Every statement is in time when it sets out, and when it is answered too, if time waits for the traffic. */
export function timedPool(pool: PgPool, inTime: () => Promise<unknown>, traffic = new Traffic()): PgPool {
  return {
    connect: () => traffic.during(async () => timedClient(await pool.connect(), inTime, traffic)),
    // The pool outlives the test, and has somebody who listens to its errors.
    on: () => {},
    removeListener: () => {},
    end: async () => {},
  }
}

function timedClient(client: PgClient, inTime: () => Promise<unknown>, traffic: Traffic): PgClient {
  const query: PgClient['query'] = (...args) => traffic.during(() => inTime().then(() => client.query(...args)))
  return new Proxy(client, {
    get(target, name) {
      const member: unknown = name === 'query' ? query : Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
