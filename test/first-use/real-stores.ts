/**
 * Stores of every kind as an app creates them, in real time: from a URL or a path, with `migrate: true` where the store
 * has it.
 */
import pg from 'pg'
import type { Store } from '../../src/core/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { type PostgresOptions, postgres } from '../../src/stores/postgres/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { serverUrl } from '../servers/server-url.js'
import { temporaryFile } from '../stores/temporary-file.js'

export interface StoreLocation {
  /** A new handle on the same data, as another process would open it. */
  handle(): Store
  /** The arguments with which another process opens it. */
  readonly settings: readonly string[]
  remove(): Promise<void> | void
}

export interface LocationKind {
  readonly name: string
  make(): Promise<StoreLocation>
}

let made = 0

const fresh = () => {
  made += 1
  return `first_${process.pid}_${Date.now().toString(36)}_${made}`
}

async function postgresLocation(liveness: PostgresOptions['liveness'] = 'lease'): Promise<StoreLocation> {
  const url = await serverUrl('postgres')
  const schema = fresh()
  return {
    handle: () => postgres({ url, schema, migrate: true, liveness }),
    settings: ['postgres', url, schema, liveness],
    async remove() {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await client.query(`drop schema if exists ${schema} cascade`)
      await client.end()
    },
  }
}

async function redisLocation(server: 'redis' | 'redis-cluster'): Promise<StoreLocation> {
  const url = await serverUrl(server)
  const prefix = `${fresh()}:`
  const where = server === 'redis' ? { url } : { nodes: url.split(',') }
  return { handle: () => redis({ ...where, prefix }), settings: [server, url, prefix], remove: () => {} }
}

export const locationKinds: readonly LocationKind[] = [
  {
    name: 'memory',
    make: async () => {
      const store = memory()
      return { handle: () => store, settings: ['memory'], remove: () => {} }
    },
  },
  {
    name: 'sqlite',
    make: async () => {
      const file = temporaryFile()
      const { path } = file
      return { handle: () => sqlite({ path }), settings: ['sqlite', path], remove: file.remove }
    },
  },
  { name: 'postgres', make: () => postgresLocation() },
  { name: 'postgres, advisory mode', make: () => postgresLocation('advisory') },
  { name: 'redis', make: () => redisLocation('redis') },
  { name: 'redis cluster', make: () => redisLocation('redis-cluster') },
]
