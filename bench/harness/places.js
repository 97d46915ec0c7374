// @ts-check
/** Where a bench's store is, in words that a process of its own can be told. */
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
