/** A first call inside the caller's own transaction on Postgres, on a connection of the same pool. */
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { type Clock, systemClock } from '../../src/core/clock.js'
import { silentLogger } from '../../src/index.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { serverUrl } from '../servers/server-url.js'

/** Divides delays by 20, so that the ten-second timeout passes in half a second. */
const hasty: Clock = { ...systemClock, after: (delayMs, callback) => systemClock.after(delayMs / 20, callback) }

let url: string
let schema: string
let made = 0
let pool: pg.Pool

beforeEach(async () => {
  url = await serverUrl('postgres')
  made += 1
  schema = `inside_${process.pid}_${Date.now().toString(36)}_${made}`
})

afterEach(async () => {
  await pool.query(`drop schema if exists ${schema} cascade`)
  await pool.end()
})

function instance(max: number) {
  pool = new pg.Pool({ connectionString: url, max })
  const store = postgres({ pool, schema, migrate: true, listen: false, clock: hasty })
  const belfry = createBelfry({ store, logger: silentLogger })
  return { belfry, job: belfry.job('bill', { run: () => null }) }
}

describe('a first enqueue inside the caller’s transaction', () => {
  it('opens the store and creates its tables over another connection of the pool', async () => {
    const { belfry, job } = instance(2)
    const client = await pool.connect()
    await client.query('begin')
    const { run } = await job.enqueue(null, { tx: client })
    expect(await belfry.runs.get(run)).toBeUndefined()
    await client.query('commit')
    client.release()
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'ready' })
    await belfry.stop()
  })

  it('that holds the pool’s last connection fails with a remedy, and a later call opens the store', async () => {
    const { belfry, job } = instance(1)
    const client = await pool.connect()
    await client.query('begin')
    await expect(job.enqueue(null, { tx: client })).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message:
        /the pool gave no connection for 10 s.*call belfry\.start\(\) or belfry\.now\(\) before that transaction/,
    })
    await client.query('rollback')
    client.release()
    await belfry.now()
    const again = await pool.connect()
    await again.query('begin')
    const { run } = await job.enqueue(null, { tx: again })
    await again.query('commit')
    again.release()
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'ready' })
    await belfry.stop()
  })
})
