import pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Check } from '../../src/core/diagnosis.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import type { Server } from '../../src/stores/redis/connection.js'
import { diagnose } from '../../src/stores/redis/diagnose.js'
import { redis } from '../../src/stores/redis/index.js'
import { Connection, openDriver } from '../../src/stores/sqlite/connection.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { serverUrl } from '../servers/ask.js'
import { temporaryFile } from './temporary-file.js'

const findings = (checks: readonly Check[] = []) =>
  checks.flatMap(({ name, findings: found }) => found.map(({ what, fix }) => ({ name, what, fix })))

describe('what a store says of itself', () => {
  it('SQLite: an index that somebody dropped, with the statement that makes it', async () => {
    const { path, remove } = temporaryFile()
    const store = sqlite({ path })
    await store.open()
    expect(findings(await store.diagnose?.())).toEqual([])
    const other = new Connection(openDriver(path))
    other.exec('drop index belfry_runs_claim')
    const found = findings(await store.diagnose?.())
    expect(found).toEqual([
      {
        name: 'indexes',
        what: 'the index belfry_runs_claim is missing: looking there gets slow',
        fix: "sqlite3 FILE 'create index belfry_runs_claim on belfry_runs (target, priority, ready_at, id) where state = 1'",
      },
    ])
    other.exec(/'(.*)'/.exec(found[0]?.fix ?? '')?.[1] ?? '')
    expect(findings(await store.diagnose?.())).toEqual([])
    other.finish()
    await store.close()
    await remove()
  })

  it('Postgres: indexes that are missing or invalid, and functions of another release; the fixes fix them', async () => {
    const url = await serverUrl('postgres')
    const schema = `doctor_${process.pid}`
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await migratePostgres({ url, schema })
    const store = postgres({ url, schema })
    await store.open()
    expect(findings(await store.diagnose?.())).toEqual([])
    await client.query(`drop index ${schema}.runs_ended`)
    await client.query(
      `update pg_catalog.pg_index set indisvalid = false where indexrelid = '${schema}.runs_key'::regclass`,
    )
    await client.query(`update ${schema}.meta set value = 1 where name = 'functions'`)
    const found = findings(await store.diagnose?.())
    expect(found).toEqual([
      expect.objectContaining({ name: 'store', what: 'the functions in the database are of an older release' }),
      {
        name: 'indexes',
        what: 'the index runs_key is invalid: Postgres does not use it',
        fix: `reindex index concurrently "${schema}".runs_key;`,
      },
      {
        name: 'indexes',
        what: 'the index runs_ended is missing: looking there gets slow',
        fix: `create index concurrently runs_ended on "${schema}".runs (ended) where ended is not null;`,
      },
    ])
    for (const { fix } of found.slice(1)) await client.query(fix)
    await migratePostgres({ url, schema })
    expect(findings(await store.diagnose?.())).toEqual([])
    await store.close()
    await client.query(`drop schema ${schema} cascade`)
    await client.end()
  })

  it('Redis: what it is, and nothing to find', async () => {
    const store = redis({ url: await serverUrl('redis'), prefix: `doctor${process.pid}:` })
    await store.open()
    const checks = await store.diagnose?.()
    expect(findings(checks)).toEqual([])
    expect(checks?.map(({ name }) => name)).toEqual(['store', 'eviction', 'masters', 'bloat'])
    await store.close()
  })

  it('Redis: a policy that throws keys away, masters whose clocks differ, and memory that runs out', async () => {
    const info = (policy: string) =>
      `redis_version:7.0.15\r\nmaxmemory_policy:${policy}\r\nused_memory:990\r\nmaxmemory:1000\r\n`
    const answers = [
      [info('noeviction'), '1000.000000'],
      [info('allkeys-lru'), '1002.500000'],
    ]
    let now = 0
    const server = {
      shards: 2,
      // An answer takes 10 ms.
      monotonic: () => {
        now += 5
        return now
      },
      read: async (_: unknown, shard: number) => answers[shard],
    } as unknown as Server
    const found = findings(await diagnose(server))
    expect(found.map(({ name }) => name)).toEqual(['eviction', 'masters', 'bloat', 'bloat'])
    expect(found[0]?.what).toMatch(/maxmemory-policy allkeys-lru/)
    expect(found[1]?.what).toMatch(/^the clocks of two masters are 24\d\d ms apart$/)
  })
})
