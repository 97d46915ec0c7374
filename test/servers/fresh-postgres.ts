import type { Store } from '../../src/core/store.js'
import { postgres } from '../../src/stores/postgres/index.js'
import type { Interrupt } from '../../src/testing/store-contract.js'
import { interruptedPool } from './interrupted-postgres.js'
import { InterruptedWrite } from './interrupted-write.js'
import { type Route, testDatabase } from './test-database.js'

export interface FreshPostgres {
  readonly store: Store
  readonly schema: string
  /** A URL that reaches the server itself. */
  readonly direct: string
  /** Advances the database's clock, which stands still otherwise. */
  elapse(ms: number): Promise<void>
  readonly interrupt: Interrupt
  /** Returns the schema for other tests. Close the store first. */
  close(): Promise<void>
}

/** A store in an empty schema on the shared server, with a manual clock. */
export async function freshPostgres(route: Route = 'postgres'): Promise<FreshPostgres> {
  const database = await testDatabase(route)
  const { schema, direct } = database
  let now = Date.UTC(2026, 0, 1)
  await database.setClock(now)
  const write = new InterruptedWrite()
  const open = async () => postgres({ pool: interruptedPool(database.pool(), write), direct, schema, listen: false })
  return {
    schema,
    direct,
    store: postgres({ pool: database.pool(), direct, schema }),
    async elapse(ms) {
      now += ms
      await database.setClock(now)
    },
    interrupt: write.interrupt(open, database.isBlocked),
    async close() {
      await write.close()
      await database.close()
    },
  }
}
