/** Which store a command works on: the one place that knows what a store may be called on the command line. */
import { existsSync } from 'node:fs'
import { Option } from 'commander'
import { failure, quote } from '../../core/errors.js'
import type { MigrationReport, Store } from '../../core/store.js'
import type { RedisOptions } from '../../stores/redis/index.js'
import { quotePath } from '../terminal/quote-path.js'

export interface StoreOptions {
  readonly store?: string
  readonly schema?: string
}

export interface StorePlace {
  /** For people: it never holds a password. */
  readonly name: string
  /** Throws where opening would make a new store: a name that was mistyped must not be answered with nothing. */
  mustExist(): void
  /** With `migrate` the tables are made first, or brought up to date, where that is a step of its own. */
  open(options?: { readonly migrate?: boolean }): Promise<Store>
  migrate(dryRun: boolean): Promise<MigrationReport>
}

export const storeOption = new Option('--store <where>', 'postgres://…, redis://… or the path of a SQLite file').env(
  'BELFRY_STORE',
)
export const schemaOption = new Option('--schema <name>', 'the Postgres schema, or what Redis keys begin with')

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i

export function storePlace({ store = '', schema }: StoreOptions): StorePlace {
  if (store === '') {
    throw failure(
      'OPTION_INVALID',
      'there is no store: pass --store, or set BELFRY_STORE (postgres://…, redis://… or a file path)',
    )
  }
  const scheme = SCHEME.exec(store)?.[1]?.toLowerCase()
  if (scheme === 'postgres' || scheme === 'postgresql') return postgresPlace(store, schema ?? 'belfry')
  if (scheme === 'redis' || scheme === 'rediss') return redisPlace(store, schema ?? 'belfry')
  if (scheme !== undefined) {
    throw failure(
      'OPTION_INVALID',
      `there is no store called ${scheme}://: use postgres://…, redis://… or the path of a file`,
    )
  }
  if (schema !== undefined) {
    throw failure('OPTION_INVALID', '--schema is for Postgres and Redis: a SQLite file has none')
  }
  return sqlitePlace(store)
}

/** The caller closes it. Connections of a store that could not be opened would keep the process from ending. */
export async function opened(store: Store): Promise<Store> {
  try {
    await store.open()
    return store
  } catch (error) {
    await store.close().catch(() => {})
    throw error
  }
}

function postgresPlace(url: string, schema: string): StorePlace {
  if (!URL.canParse(url)) {
    throw failure('OPTION_INVALID', 'the URL of --store cannot be read: postgres://user:password@host:5432/database')
  }
  return {
    // A schema without tables is refused when it is opened.
    mustExist: () => {},
    name: `schema ${quote(schema)} on ${new URL(url).host || 'the local server'}`,
    open: async ({ migrate = false } = {}) =>
      (await import('../../stores/postgres/index.js')).postgres({ url, schema, migrate }),
    migrate: async (dryRun) =>
      (await import('../../stores/postgres/index.js')).migratePostgres({ url, schema, dryRun }),
  }
}

/** What the Redis store is opened with. Several URLs, with commas between them, are nodes of a cluster. */
export function redisOptions({ store = '', schema = 'belfry' }: StoreOptions): RedisOptions {
  if (!/^rediss?:/i.test(store)) throw failure('OPTION_INVALID', 'this is for a Redis store: pass --store redis://…')
  const urls = redisUrls(store)
  const [url = ''] = urls
  return { prefix: `${schema}:`, ...(urls.length > 1 ? { nodes: urls } : { url }) }
}

function redisUrls(text: string): string[] {
  const urls = text.split(',').map((url) => url.trim())
  // What stands after the host is the number of a database.
  if (urls.every((url) => URL.canParse(url) && /^\/?\d*$/.test(new URL(url).pathname))) return urls
  throw failure('OPTION_INVALID', 'the URL of --store cannot be read: redis://user:password@host:6379/0')
}

function redisPlace(store: string, schema: string): StorePlace {
  const urls = redisUrls(store)
  const prefix = `${schema}:`
  const hosts = urls.map((url) => new URL(url).host || 'the local server')
  return {
    // Keys are made by whoever writes the first: an empty server is an empty store.
    mustExist: () => {},
    name: `keys ${quote(`${prefix}*`)} on ${hosts.join(', ')}`,
    open: async () => (await import('../../stores/redis/index.js')).redis(redisOptions({ store, schema })),
    migrate: async () => {
      throw failure('OPTION_INVALID', 'there is nothing to migrate on Redis: it has no tables')
    },
  }
}

function sqlitePlace(path: string): StorePlace {
  return {
    name: `file ${quotePath(path)}`,
    mustExist: () => {
      if (existsSync(path)) return
      throw failure(
        'STORE_UNREACHABLE',
        `there is no file ${quotePath(path)}: belfry migrate --store ${path} makes one`,
      )
    },
    open: async () => (await import('../../stores/sqlite/index.js')).sqlite({ path }),
    migrate: async (dryRun) => (await import('../../stores/sqlite/index.js')).migrateSqlite({ path, dryRun }),
  }
}
