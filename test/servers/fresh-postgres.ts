import type { Store } from '../../src/core/store.js'
import { postgres } from '../../src/stores/postgres/index.js'
import type { Interrupt } from '../../src/testing/store-contract.js'
import { heldPool } from './held-pool.js'
import { HeldWrite } from './held-write.js'
import { testDatabase, type Way } from './test-database.js'

export interface FreshPostgres {
  readonly store: Store
  readonly schema: string
  /** A URL that reaches the server itself. */
  readonly direct: string
  /** Lets time pass on the database's clock, which else stands still. */
  elapse(ms: number): Promise<void>
  readonly interrupt: Interrupt
  /** Gives the schema back. Close the store first. */
  close(): Promise<void>
}

/** A store in an empty schema of its own, on the server that the tests share, with a clock that is turned by hand. */
export async function freshPostgres(way: Way = 'postgres'): Promise<FreshPostgres> {
  const database = await testDatabase(way)
  const { schema, direct } = database
  let now = Date.UTC(2026, 0, 1)
  await database.setClock(now)
  const held = new HeldWrite()
  const open = async () => postgres({ pool: heldPool(database.pool(), held), direct, schema, listen: false })
  return {
    schema,
    direct,
    store: postgres({ pool: database.pool(), direct, schema }),
    async elapse(ms) {
      now += ms
      await database.setClock(now)
    },
    interrupt: held.interrupt(open, database.isBlocked),
    async close() {
      await held.close()
      await database.close()
    },
  }
}
