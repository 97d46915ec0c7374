/** An empty store of each kind that several processes can share, in real time. */
import pg from 'pg'
import type { Store } from '../../src/index.js'
import { migratePostgres, type PostgresOptions, postgres } from '../../src/stores/postgres/index.js'
import { type RedisOptions, redis } from '../../src/stores/redis/index.js'
import { type SqliteOptions, sqlite } from '../../src/stores/sqlite/index.js'
import { serverUrl } from '../servers/server-url.js'
import { temporaryFile } from '../stores/temporary-file.js'

/** How to open a store, as data that can be passed to another process. */
export type StoreLocation =
  | { readonly sqlite: SqliteOptions }
  | { readonly postgres: PostgresOptions }
  | { readonly redis: RedisOptions }

export function storeAt(location: StoreLocation): Store {
  if ('sqlite' in location) return sqlite(location.sqlite)
  return 'postgres' in location ? postgres(location.postgres) : redis(location.redis)
}

export interface LocationKind {
  readonly name: string
  make(): Promise<{ readonly location: StoreLocation; remove(): Promise<void> }>
}

const sqliteFile: LocationKind = {
  name: 'sqlite',
  make: async () => {
    const { path, remove } = temporaryFile()
    return { location: { sqlite: { path } }, remove }
  },
}

let made = 0

function ownName(): string {
  made += 1
  return `lock_${process.pid}_${Date.now().toString(36)}_${made}`
}

function postgresSchema(liveness: 'lease' | 'advisory'): LocationKind {
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
      return { location: { postgres: { url, schema, liveness } }, remove }
    },
  }
}

/** The servers belong to the test run and are removed with their data, so `remove` has nothing to do. */
const redisPrefix: LocationKind = {
  name: 'redis',
  make: async () => {
    const url = await serverUrl('redis')
    return { location: { redis: { url, prefix: `${ownName()}:` } }, remove: async () => {} }
  },
}

const clusterPrefix: LocationKind = {
  name: 'redis cluster',
  make: async () => {
    const nodes = (await serverUrl('redis-cluster')).split(',')
    return { location: { redis: { nodes, prefix: `${ownName()}:` } }, remove: async () => {} }
  },
}

export const locationKinds: readonly LocationKind[] = [
  sqliteFile,
  postgresSchema('lease'),
  postgresSchema('advisory'),
  redisPrefix,
  clusterPrefix,
]
