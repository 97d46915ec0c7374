// @ts-check
/** How to open a bench's store, as data that can be passed to another process. */
import { memory } from '../../dist/stores/memory/index.js'
import { postgres } from '../../dist/stores/postgres/index.js'
import { redis } from '../../dist/stores/redis/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

/**
 * @typedef {{ postgres: { url: string, schema: string } } | { redis: { url: string, prefix: string } } | { sqlite: { path: string } } | { memory: {} }} Place
 * @param {Place} place
 */
export function storeAt(place) {
  if ('redis' in place) return redis(place.redis)
  if ('postgres' in place) return postgres(place.postgres)
  return 'sqlite' in place ? sqlite(place.sqlite) : memory()
}

/** The same as arguments for the command line. @param {Place} place */
export function storeArguments(place) {
  if ('redis' in place) return ['--store', place.redis.url, '--schema', place.redis.prefix.replace(/:$/, '')]
  if ('postgres' in place) return ['--store', place.postgres.url, '--schema', place.postgres.schema]
  if ('sqlite' in place) return ['--store', place.sqlite.path]
  throw new Error('a store in memory has no place that the command line could name')
}
