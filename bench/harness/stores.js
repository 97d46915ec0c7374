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
 * @property {(ms: number) => Promise<void>} skip Lets the store's clock jump.
 * @property {() => Promise<void>} close
 * @property {string | undefined} [schema] Where it is, if it is on Postgres.
 * @property {import('./places.js').Place | undefined} [place] Where other processes find it.
 */

/**
 * @typedef {{ store: Store, skip: (ms: number) => Promise<void>, remove?: () => void | Promise<void>, schema?: string, place?: import('./places.js').Place }} Made
 * @type {Record<string, (leaps: boolean) => Promise<Made>>}
 */
const MAKERS = {
  memory: async () => {
    const clock = leapingClock()
    return { store: memory({ clock }), skip: clock.leap, place: { memory: {} } }
  },
  sqlite: async () => {
    const { path, remove } = temporaryFile()
    process.once('exit', remove)
    const clock = leapingClock()
    return { store: sqlite({ path, clock }), skip: clock.leap, remove, place: { sqlite: { path } } }
  },
  postgres: () => onPostgres('lease'),
  'postgres in advisory mode': () => onPostgres('advisory'),
  redis: async (leaps) => {
    const [url, prefix] = [await redisUrl(), `bench${process.pid}.${Date.now().toString(36)}:`]
    const store = redisStore({ url, prefix }, { shifted: leaps })
    const { leap, end } = await leapingServer(prefix)
    const remove = async () => {
      end()
      await clearRedis(prefix)
    }
    return { store, skip: leap, remove, place: { redis: { url, prefix } } }
  },
}

/** @param {'lease' | 'advisory'} liveness */
async function onPostgres(liveness) {
  const schema = await freshSchema()
  const url = await postgresUrl()
  const store = postgres({ url, schema, migrate: true, liveness })
  const place = { postgres: { url, schema } }
  return { store, skip: leapingDatabase(schema), remove: () => dropSchema(schema), schema, place }
}

/**
 * @param {string} name
 * @param {{ leaps?: boolean }} [options] Without leaps every operation costs what it costs users: on Redis, looking for a
 *   shift of the time is one more command in each script.
 * @returns {Promise<BenchStore>}
 */
export async function openStore(name, { leaps = true } = {}) {
  const make = MAKERS[name]
  if (make === undefined) throw new UsageError(`store "${name}" is unknown: ${Object.keys(MAKERS).join(', ')} are`)
  const { store, skip, remove, schema, place } = await make(leaps)
  await store.open()
  const close = async () => {
    await store.close()
    await remove?.()
  }
  return { name, store, skip, close, schema, place }
}

/**
 * What there is to know of a store's server.
 * @param {string} name
 */
export async function storeSettings(name) {
  if (name === 'redis') return { redis: await redisSettings() }
  return name === 'postgres' ? { postgres: await serverSettings() } : {}
}

/** The path of a database that is not there yet, in a folder of its own. */
export function temporaryFile() {
  const folder = mkdtempSync(join(tmpdir(), 'belfry-bench-'))
  return { path: join(folder, 'bench.db'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** The system's clock, with jumps: a backlog of a thousand seconds is made at once. */
function leapingClock() {
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
    leap: async (ms) => {
      offset += ms
    },
  }
}

/**
 * The same for a schema: all of it reads the time from one function.
 * @param {string} schema
 */
function leapingDatabase(schema) {
  let offset = 0
  return async (/** @type {number} */ ms) => {
    offset += ms
    const now = `select (extract(epoch from clock_timestamp()) * 1000000)::bigint + ${Math.round(offset * 1_000)}`
    const sql = `create or replace function ${schema}.now_us() returns bigint language sql volatile parallel safe as $$ ${now} $$`
    await withClient((client) => client.query(sql))
  }
}

/**
 * The same for a Redis: its scripts add a shift to the server's time.
 * @param {string} prefix
 */
async function leapingServer(prefix) {
  const client = await redisClient()
  const leap = async (/** @type {number} */ ms) => {
    await client.sendCommand(['INCRBY', `${prefix}{0}:shift`, String(Math.round(ms * 1_000))])
  }
  return { leap, end: () => client.destroy() }
}
