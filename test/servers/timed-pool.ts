/** Statements that find the database's clock where a clock that is turned by hand stands. */
import type { Clock } from '../../src/core/clock.js'
import type { PgPool } from '../../src/stores/postgres/index.js'
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

/** The first statement of each transaction is in time, and so are those after it if time waits for the traffic. */
export function timedPool(pool: PgPool, inTime: () => Promise<unknown>, traffic = new Traffic()): PgPool {
  return {
    connect: () => traffic.during(() => inTime().then(() => pool.connect())),
    query: (query) => traffic.during(() => inTime().then(() => pool.query(query))),
    // The pool outlives the test, and has somebody who listens to its errors.
    on: () => {},
    removeListener: () => {},
    end: async () => {},
  }
}
