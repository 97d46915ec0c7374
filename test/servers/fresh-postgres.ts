import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import { serverUrl } from './ask.js'
import { emptySchema, setClock, turnedByHand } from './database-clock.js'

export interface FreshPostgres {
  readonly store: Store
  readonly schema: string
  /** A URL that reaches the server itself. */
  readonly direct: string
  /** Lets time pass on the database's clock, which else stands still. */
  elapse(ms: number): Promise<void>
  /** Gives the schema back. Close the store first. */
  close(): Promise<void>
}

/** Making tables takes longer than most tests, so those of a finished test are emptied and used again. */
const free: string[] = []
const made: string[] = []
const START = Date.UTC(2026, 0, 1)
/** Hints travel in real time. */
const MAX_WAIT_MS = 100

/** A store in an empty schema of its own, on the server that the tests share, with a clock that is turned by hand. */
export async function freshPostgres(): Promise<FreshPostgres> {
  const url = await serverUrl('postgres')
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const schema = free.pop() ?? (await newSchema(pool))
  let now = START
  await pool.query(setClock(schema, now))
  return {
    schema,
    direct: url,
    store: postgres({ pool, direct: url, schema }),
    async elapse(ms) {
      now += ms
      await pool.query(setClock(schema, now))
      await sleep(Math.min(ms, MAX_WAIT_MS))
    },
    async close() {
      await pool.query(emptySchema(schema))
      free.push(schema)
      await pool.end()
    },
  }
}

async function newSchema(pool: pg.Pool): Promise<string> {
  const schema = `t${process.pid}_${Date.now().toString(36)}_${made.length}`
  made.push(schema)
  await migratePostgres({ pool, schema })
  await pool.query(turnedByHand(schema))
  return schema
}

afterAll(async () => {
  if (made.length === 0) return
  const pool = new pg.Pool({ connectionString: await serverUrl('postgres') })
  for (const schema of made) await pool.query(`drop schema if exists ${schema} cascade`)
  await pool.end()
})
