import type { PgClient, PgPool } from '../../src/stores/postgres/index.js'
import { type HeldWrite, replacing } from './held-write.js'

/** The statements that write what was decided on something read before. */
const WRITES = /record_ticks|record_plans|change_schedules/

/** A pool whose writes can be held back. */
export function heldPool(pool: PgPool, held: HeldWrite): PgPool {
  return replacing(pool, { connect: async () => heldClient(await pool.connect(), held) })
}

function heldClient(client: PgClient, held: HeldWrite): PgClient {
  return replacing(client, {
    async query(query) {
      if (WRITES.test(query.text)) await held.pass()
      return client.query(query)
    },
  })
}
