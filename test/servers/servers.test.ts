import pg from 'pg'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { startPgBouncer } from './pgbouncer.js'
import { startPostgres } from './postgres.js'
import { serverUrl } from './server-url.js'

afterEach(() => vi.unstubAllEnvs())

async function ask(connectionString: string, sql: string): Promise<string> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    const { rows } = await client.query({ text: sql, rowMode: 'array' })
    return String(rows[0]?.[0])
  } finally {
    await client.end()
  }
}

describe('servers for the tests', () => {
  it('are those that the environment names, and are left running', async () => {
    const url = await serverUrl('postgres')
    vi.stubEnv('BELFRY_TEST_POSTGRES', url)
    const server = await startPostgres()
    expect(server.url).toBe(url)
    const pooled = await serverUrl('pgbouncer')
    vi.stubEnv('BELFRY_TEST_PGBOUNCER', pooled)
    const pooler = await startPgBouncer(server.url)
    expect(pooler.url).toBe(pooled)
    await pooler.stop()
    await server.stop()
    expect(await ask(pooled, 'select 1')).toBe('1')
  })

  it('are refused when the pooler stands before another database', async () => {
    const url = await serverUrl('postgres')
    vi.stubEnv('BELFRY_TEST_PGBOUNCER', await serverUrl('pgbouncer'))
    const elsewhere = new URL(url)
    elsewhere.pathname = '/template1'
    await expect(startPgBouncer(elsewhere.href)).rejects.toThrow(/another database/)
  })

  it('share connections of the server among their clients in the pooler', async () => {
    const pooled = await serverUrl('pgbouncer')
    const own = `mark ${process.pid}`
    const client = new pg.Client({ connectionString: pooled })
    await client.connect()
    await client.query('select set_config($1, $2, false)', ['belfry.mark', own])
    // In transaction mode another client soon gets the connection with this setting. In session mode none would.
    const seen = () => ask(pooled, `select current_setting('belfry.mark', true)`)
    await expect.poll(seen, { timeout: 20_000, interval: 5 }).toBe(own)
    await client.end()
  })
})
