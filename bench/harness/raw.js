// @ts-check
/** The reference with which a store is compared: the least that a scheduler must do on the same database. */
import { openRawPostgres } from './raw-postgres.js'
import { openRawRedis } from './raw-redis.js'
import { openRawSqlite } from './raw-sqlite.js'

export { RAW_BATCH } from './raw-sqlite.js'

/**
 * The operations of every reference.
 * @typedef {object} Raw
 * @property {() => unknown} recordTicks
 * @property {(name: string) => unknown} lockAndUnlock
 * @property {() => void | Promise<void>} close
 */

/**
 * @param {string} store
 * @param {number} [schedules]
 * @returns {Promise<Raw>}
 */
export async function openRaw(store, schedules = 0) {
  if (store === 'redis') return openRawRedis(schedules)
  return store === 'postgres' ? openRawPostgres({ schedules }) : openRawSqlite(schedules)
}

/**
 * The references on Postgres and Redis also enqueue, claim and drain runs.
 * @typedef {import('./raw-postgres.js').RawPostgres | import('./raw-redis.js').RawRedis} RawServer
 * @param {string} store
 * @returns {Promise<RawServer>}
 */
export async function openRawServer(store) {
  return store === 'redis' ? openRawRedis() : openRawPostgres()
}

/** @param {string} store */
export function rawName(store) {
  if (store === 'redis') return 'a raw Lua loop on Redis'
  return store === 'postgres' ? 'raw prepared statements on Postgres' : 'raw prepared statements on SQLite'
}
