// @ts-check
/** Where a bench's store is, in words that a process of its own can be told. */
import { postgres } from '../../dist/stores/postgres/index.js'
import { redis } from '../../dist/stores/redis/index.js'

/**
 * @typedef {{ postgres: { url: string, schema: string } } | { redis: { url: string, prefix: string } }} Place
 * @param {Place} place
 */
export function storeAt(place) {
  return 'redis' in place ? redis(place.redis) : postgres(place.postgres)
}
