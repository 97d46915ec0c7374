/** An empty store of each kind that several processes can share, in real time. */
import pg from 'pg'
import type { Store } from '../../src/index.js'
import { migratePostgres, type PostgresOptions, postgres } from '../../src/stores/postgres/index.js'
import { type RedisOptions, redis } from '../../src/stores/redis/index.js'
import { type SqliteOptions, sqlite } from '../../src/stores/sqlite/index.js'
import { serverUrl } from '../servers/ask.js'
import { temporaryFile } from '../stores/temporary-file.js'

/** How to open a store, as data that can be passed to another process. */
export type Place =
  | { readonly sqlite: SqliteOptions }
  | { readonly postgres: PostgresOptions }
  | { readonly redis: RedisOptions }

export function storeAt(place: Place): Store {
  if ('sqlite' in place) return sqlite(place.sqlite)
  return 'postgres' in place ? postgres(place.postgres) : redis(place.redis)
}

export interface PlaceKind {
  readonly name: string
  make(): Promise<{ readonly place: Place; remove(): Promise<void> }>
}

const sqliteFile: PlaceKind = {
  name: 'sqlite',
  make: async () => {
    const { path, remove } = temporaryFile()
    return { place: { sqlite: { path } }, remove }
  },
}

let made = 0

function ownName(): string {
  made += 1
  return `lock_${process.pid}_${Date.now().toString(36)}_${made}`
}

function postgresSchema(liveness: 'lease' | 'advisory'): PlaceKind {
  return {
    name: `postgres (${liveness})`,
    make: async () => {
      const [url, schema] = [await serverUrl('postgres'), ownName()]
      await migratePostgres({ url, schema })
      const remove = async () => {
        const admin = new pg.Client({ connectionString: url })
        await admin.connect()
        await admin.query(`drop schema ${schema} cascade`)
        await admin.end()
      }
      return { place: { postgres: { url, schema, liveness } }, remove }
    },
  }
}

/** The servers belong to the test run and are removed with their data, so `remove` has nothing to do. */
const redisPrefix: PlaceKind = {
  name: 'redis',
  make: async () => {
    const url = await serverUrl('redis')
    return { place: { redis: { url, prefix: `${ownName()}:` } }, remove: async () => {} }
  },
}

const clusterPrefix: PlaceKind = {
  name: 'redis cluster',
  make: async () => {
    const nodes = (await serverUrl('redis-cluster')).split(',')
    return { place: { redis: { nodes, prefix: `${ownName()}:` } }, remove: async () => {} }
  },
}

export const placeKinds: readonly PlaceKind[] = [
  sqliteFile,
  postgresSchema('lease'),
  postgresSchema('advisory'),
  redisPrefix,
  clusterPrefix,
]
