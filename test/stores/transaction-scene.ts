import type pg from 'pg'
import type { Store } from '../../src/core/store.js'
import type { PostgresTransaction } from '../../src/stores/postgres/index.js'
import { Scene } from '../../src/testing/contract/scene.js'
import { freshPostgres } from '../servers/fresh-postgres.js'
import { effectsTable } from './effects-table.js'

export type Tx = PostgresTransaction<pg.PoolClient, pg.Pool>
export type Work = (tx: Tx) => unknown

/** A new store with one instance, and a user table in the same database. */
export async function transactionScene() {
  const fresh = await freshPostgres()
  const table = await effectsTable()
  const scene = new Scene(fresh)
  await scene.store.open()
  await scene.join()
  return {
    scene,
    table,
    schema: fresh.schema,
    direct: fresh.direct,
    effects: table.effects,
    /** Writes an effect inside a transaction, and returns its text. */
    async write(tx: { query(sql: string, values: unknown[]): Promise<unknown> }, what: string): Promise<string> {
      await tx.query(`insert into ${table.name} (what) values ($1)`, [what])
      return what
    },
    transact: (run: { readonly id: string; readonly token: number }, work: Work, signal?: AbortSignal) =>
      transactOn(scene.store, run, work, signal),
    async close(): Promise<void> {
      await scene.store.close()
      await fresh.close()
      await table.drop()
    },
  }
}

export function transactOn(
  store: Store,
  { id, token }: { readonly id: string; readonly token: number },
  work: Work,
  signal?: AbortSignal,
) {
  const { transact } = store.runs
  if (transact === undefined) throw new Error('the store has no transactions')
  return transact({ run: id, token }, work as (tx: unknown) => unknown, signal)
}

/** A promise with its resolver. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
