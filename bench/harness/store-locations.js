// @ts-check
/** How to open a bench's store, as data that can be passed to another process. */
import { memory } from '../../dist/stores/memory/index.js'
import { postgres } from '../../dist/stores/postgres/index.js'
import { redis } from '../../dist/stores/redis/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

/**
 * @typedef {{ postgres: { url: string, schema: string } } | { redis: { url: string, prefix: string } } | { sqlite: { path: string } } | { memory: {} }} StoreLocation
 * @param {StoreLocation} location
 */
export function storeAt(location) {
  if ('redis' in location) return redis(location.redis)
  if ('postgres' in location) return postgres(location.postgres)
  return 'sqlite' in location ? sqlite(location.sqlite) : memory()
}

/** The arguments by which `belfry` opens the store. @param {StoreLocation} location */
export function storeArguments(location) {
  if ('redis' in location) return ['--store', location.redis.url, '--schema', location.redis.prefix.replace(/:$/, '')]
  if ('postgres' in location) return ['--store', location.postgres.url, '--schema', location.postgres.schema]
  if ('sqlite' in location) return ['--store', location.sqlite.path]
  throw new Error('a store in memory has no location that the command line could name')
}
