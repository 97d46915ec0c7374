import pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Check } from '../../src/core/diagnosis.js'
import { migratePostgres, postgres } from '../../src/stores/postgres/index.js'
import type { LuaScript } from '../../src/stores/redis/connection/lua-script.js'
import type { Server } from '../../src/stores/redis/connection/server.js'
import { diagnose } from '../../src/stores/redis/diagnose.js'
import { redis } from '../../src/stores/redis/index.js'
import { Connection } from '../../src/stores/sqlite/connection/connection.js'
import { openDriver } from '../../src/stores/sqlite/connection/driver.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { wrongServerClock } from '../servers/faketime.js'
import { startOwnRedis, tellRedis } from '../servers/redis.js'
import { serverUrl } from '../servers/server-url.js'
import { temporaryFile } from './temporary-file.js'

const findings = (checks: readonly Check[] = []) =>
  checks.flatMap(({ name, findings: found }) => found.map(({ what, fix }) => ({ name, what, fix })))

/** An empty store. */
const NO_KEYS = { keys: [], types: [] }

describe('a store’s own diagnosis', () => {
  it('SQLite: names a dropped index, with the statement that creates it', async () => {
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
        fix: `sqlite3 FILE "create index belfry_runs_claim on belfry_runs (target, priority, ready_at, id) where state = 'ready'"`,
      },
    ])
    other.exec(/"(.*)"/.exec(found[0]?.fix ?? '')?.[1] ?? '')
    expect(findings(await store.diagnose?.())).toEqual([])
    other.finish()
    await store.close()
    await remove()
  })

  it('Postgres: names missing or invalid indexes, and functions of another release; the suggested fixes work', async () => {
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

  it('Redis: describes the server, and finds nothing wrong', async () => {
    const store = redis({ url: await serverUrl('redis'), prefix: `doctor${process.pid}:` })
    await store.open()
    const checks = await store.diagnose?.()
    expect(findings(checks)).toEqual([])
    expect(checks?.map(({ name }) => name)).toEqual([
      'store',
      'stored keys',
      'eviction',
      'persistence',
      'masters',
      'bloat',
    ])
    await store.close()
    const elsewhere = redis({ url: new URL('/99', await serverUrl('redis')).href })
    await expect(elsewhere.open()).rejects.toMatchObject({
      code: 'STORE_INVALID',
      message: expect.stringContaining('has no database of that number'),
    })
    await elsewhere.close()
  })

  it('distinguishes Redis from Valkey by their versions', async () => {
    const about = async (...infos: string[]) => {
      const call = async (_: unknown, shard: number) => ({ info: infos[shard], now: 1_000, serverTime: 1, ...NO_KEYS })
      const server = { shards: infos.length, monotonic: () => performance.now(), call }
      return (await diagnose(server as unknown as Server))[0]?.about
    }
    const valkey = 'redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n'
    expect(await about('redis_version:7.0.15\r\n')).toBe('Redis 7.0.15, one shard')
    expect(await about(valkey, valkey)).toBe('Valkey 8.0.1, 2 shards')
    expect(await about('redis_version:7.2.4\r\n', valkey)).toBe('Redis 7.2.4 and Valkey 8.0.1, 2 shards')
  })

  it('Redis: names a server that logs no changes, also when it is opened', async () => {
    const own = await startOwnRedis(['--appendonly', 'no'])
    const store = redis({ url: own.url })
    const warnings: string[] = []
    store.onWarning?.((message) => warnings.push(message))
    await store.open()
    expect(warnings).toEqual([expect.stringMatching(/^this Redis server writes no log .*appendonly yes/)])
    expect(findings(await store.diagnose?.())).toMatchObject([
      { name: 'persistence', fix: expect.stringContaining('redis-cli config set appendonly yes') },
    ])
    await store.close()
    await own.stop()
  })

  it('Redis: names an eviction policy, clock differences between masters, and low memory', {
    timeout: 60_000,
  }, async () => {
    const [well, ill] = await Promise.all([
      startOwnRedis(),
      startOwnRedis(['--maxmemory', '900kb', '--maxmemory-policy', 'allkeys-lru'], { env: wrongServerClock(2_500) }),
    ])
    const found = async (...urls: string[]) => {
      const server = {
        shards: urls.length,
        monotonic: () => performance.now(),
        call: async (look: LuaScript<unknown, unknown>, shard: number) =>
          look.name === 'schema/key-types'
            ? NO_KEYS
            : look.answer(await tellRedis(urls[shard] ?? '', 'EVAL', look.composed.server.text, '0')).gives,
      }
      return findings(await diagnose(server as unknown as Server))
    }
    expect(await found(well.url, well.url)).toEqual([])
    const both = await found(well.url, ill.url)
    expect(both.map(({ name }) => name)).toEqual(['eviction', 'masters', 'bloat'])
    expect(both[0]?.what).toMatch(/maxmemory-policy allkeys-lru/)
    // The network's delay does not count as a difference between the clocks.
    expect(both[1]?.what).toMatch(/^the clocks of two masters are (1\d|2[0-5])\d\d ms apart$/)
    expect(both[2]).toEqual({
      name: 'bloat',
      what: expect.stringMatching(/uses 1 MB of 1 MB/),
      fix: expect.any(String),
    })
    await tellRedis(ill.url, 'CONFIG', 'SET', 'maxmemory', '0')
    await tellRedis(ill.url, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    expect((await found(ill.url)).map(({ name }) => name)).toEqual([])
    await Promise.all([well.stop(), ill.stop()])
  })
})
