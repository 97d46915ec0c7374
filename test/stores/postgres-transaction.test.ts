import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PostgresTransaction } from '../../src/stores/postgres/index.js'
import { key, Scene } from '../../src/testing/contract/scene.js'
import { type FreshPostgres, freshPostgres } from '../servers/fresh-postgres.js'
import { effectsTable } from './effects-table.js'

type Tx = PostgresTransaction<pg.PoolClient, pg.Pool>

let fresh: FreshPostgres
let scene: Scene
let table: Awaited<ReturnType<typeof effectsTable>>

beforeEach(async () => {
  fresh = await freshPostgres()
  table = await effectsTable()
  scene = new Scene(fresh)
  await scene.store.open()
  await scene.join()
})

afterEach(async () => {
  await scene.store.close()
  await fresh.close()
  await table.drop()
})

async function write(tx: Tx, what: string): Promise<string> {
  await tx.query(`insert into ${table.name} (what) values ($1)`, [what])
  return what
}

const transact = (run: { id: string; token: number }, work: (tx: Tx) => unknown, signal?: AbortSignal) => {
  const { transact: operation } = scene.store.runs
  if (operation === undefined) throw new Error('no transactions')
  return operation({ run: run.id, token: run.token }, work as (tx: unknown) => unknown, signal)
}

describe('transact on postgres', () => {
  it('commits the work, and the run succeeds with its value when it is settled', async () => {
    const id = await scene.enqueue()
    const run = await scene.claimOne()
    expect(await transact(run, (tx) => write(tx, 'paid'))).toEqual({ result: 'paid' })
    expect(await table.effects()).toEqual(['paid'])
    expect(await scene.stateOf(id)).toBe('running')
    expect(await scene.run(id)).not.toHaveProperty('result')
    expect(await scene.settle(run, { kind: 'failed', error: { message: 'afterwards' } })).toBe('settled')
    expect(await scene.run(id)).toMatchObject({ state: 'succeeded', result: 'paid', failures: 0 })
    expect(await scene.run(id)).not.toHaveProperty('error')
  })
})
