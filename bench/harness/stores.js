// @ts-check
/** Stores by name, for benches that take `--store`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memory } from '../../dist/stores/memory/index.js'
import { postgres } from '../../dist/stores/postgres/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'
import { dropSchema, freshSchema, postgresUrl, serverSettings, withClient } from './postgres.js'
import { clearRedis } from './raw-redis.js'
import { redisClient, redisSettings, redisUrl } from './redis.js'
import { UsageError } from './usage-error.js'

/**
 * @typedef {import('../../dist/core/store.js').Store} Store
 * @typedef {import('../../dist/core/clock.js').Clock} Clock
 * @typedef {object} BenchStore
 * @property {string} name
 * @property {Store} store
 * @property {(ms: number) => Promise<void>} skip Moves the store's clock forward.
 * @property {() => Promise<void>} close
 * @property {string | undefined} [schema] The schema, on Postgres.
 * @property {import('./store-locations.js').StoreLocation | undefined} [location] How other processes open the same store.
 */

/**
 * @typedef {{ store: Store, skip: (ms: number) => Promise<void>, remove?: () => void | Promise<void>, schema?: string, location?: import('./store-locations.js').StoreLocation }} OpenedStore
 * @type {Record<string, (jumps: boolean) => Promise<OpenedStore>>}
 */
const MAKERS = {
  memory: async () => {
    const clock = jumpingClock()
    return { store: memory({ clock }), skip: clock.jump, location: { memory: {} } }
  },
  sqlite: async () => {
    const { path, remove } = temporaryFile()
    process.once('exit', remove)
    const clock = jumpingClock()
    return { store: sqlite({ path, clock }), skip: clock.jump, remove, location: { sqlite: { path } } }
  },
  postgres: () => onPostgres('lease'),
  'postgres in advisory mode': () => onPostgres('advisory'),
  redis: async (jumps) => {
    const [url, prefix] = [await redisUrl(), `bench${process.pid}.${Date.now().toString(36)}:`]
    const store = redisStore({ url, prefix }, { shifted: jumps })
    const { jump, end } = await jumpingServer(prefix)
    const remove = async () => {
      end()
      await clearRedis(prefix)
    }
    return { store, skip: jump, remove, location: { redis: { url, prefix } } }
  },
}

/** @param {'lease' | 'advisory'} liveness */
async function onPostgres(liveness) {
  const schema = await freshSchema()
  const url = await postgresUrl()
  const store = postgres({ url, schema, migrate: true, liveness })
  const location = { postgres: { url, schema } }
  return { store, skip: jumpingDatabase(schema), remove: () => dropSchema(schema), schema, location }
}

/**
 * @param {string} name
 * @param {{ jumps?: boolean }} [options] Without `jumps` the clock cannot jump, and every operation costs as much as
 *   for users: on Redis, reading the clock's offset is one more command per script.
 * @returns {Promise<BenchStore>}
 */
export async function openStore(name, { jumps = true } = {}) {
  const make = MAKERS[name]
  if (make === undefined) throw new UsageError(`store "${name}" is unknown: ${Object.keys(MAKERS).join(', ')} are`)
  const { store, skip, remove, schema, location } = await make(jumps)
  await store.open()
  const close = async () => {
    await store.close()
    await remove?.()
  }
  return { name, store, skip, close, schema, location }
}

/** The settings of a store's server. @param {string} name */
export async function storeSettings(name) {
  if (name === 'redis') return { redis: await redisSettings() }
  return name === 'postgres' ? { postgres: await serverSettings() } : {}
}

/** The path of a new database in a temporary folder. */
export function temporaryFile() {
  const folder = mkdtempSync(join(tmpdir(), 'belfry-bench-'))
  return { path: join(folder, 'bench.db'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** The system's clock, which can also jump forward, so that a backlog of a thousand seconds is made at once. */
function jumpingClock() {
  let offset = 0
  return {
    now: () => Date.now() + offset,
    monotonic: () => performance.now(),
    /** @param {number} delayMs @param {() => void} callback */
    after(delayMs, callback) {
      const timer = setTimeout(callback, delayMs)
      return () => clearTimeout(timer)
    },
    /** @param {number} ms */
    jump: async (ms) => {
      offset += ms
    },
  }
}

/** Moves a schema's clock forward by replacing `now_us`, from which all its statements read the time. @param {string} schema */
function jumpingDatabase(schema) {
  let offset = 0
  return async (/** @type {number} */ ms) => {
    offset += ms
    const now = `select (extract(epoch from clock_timestamp()) * 1000000)::bigint + ${Math.round(offset * 1_000)}`
    const sql = `create or replace function ${schema}.now_us() returns bigint language sql volatile parallel safe as $$ ${now} $$`
    await withClient((client) => client.query(sql))
  }
}

/** Moves a Redis store's clock forward: its scripts add this offset to the server's time. @param {string} prefix */
async function jumpingServer(prefix) {
  const client = await redisClient()
  const jump = async (/** @type {number} */ ms) => {
    await client.sendCommand(['INCRBY', `${prefix}{0}:shift`, String(Math.round(ms * 1_000))])
  }
  return { jump, end: () => client.destroy() }
}
