import type { PgClient, PgPool } from '../../src/stores/postgres/index.js'
import { type InterruptedWrite, withMethods } from './interrupted-write.js'

/** Statements that write a decision made from an earlier read. */
const WRITES = /record_ticks|record_plans|change_schedules/

/** A pool whose writes wait for `InterruptedWrite`. */
export function interruptedPool(pool: PgPool, write: InterruptedWrite): PgPool {
  return withMethods(pool, { connect: async () => interruptedClient(await pool.connect(), write) })
}

function interruptedClient(client: PgClient, write: InterruptedWrite): PgClient {
  return withMethods(client, {
    async query(query) {
      if (WRITES.test(query.text)) await write.beforeWrite()
      return client.query(query)
    },
  })
}
