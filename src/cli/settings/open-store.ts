/** Opens the store that --store names: the only place that maps URLs and paths to stores. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Option } from 'commander'
import { failure, quote } from '../../core/errors.js'
import type { MigrationReport, Store } from '../../core/store.js'
import type { RedisOptions } from '../../stores/redis/index.js'
import { quotePath } from '../terminal/quote-path.js'

export interface StoreOptions {
  readonly store?: string
  readonly schema?: string
}

export interface StoreLocation {
  /** For messages; never contains a password. */
  readonly name: string
  /** Throws if opening would create a new store, so that a mistyped name is not answered with an empty one. */
  mustExist(): void
  /** With `migrate`, creates or updates the tables first. */
  open(options?: { readonly migrate?: boolean }): Promise<Store>
  migrate(dryRun: boolean): Promise<MigrationReport>
}

export const storeOption = new Option('--store <where>', 'postgres://…, redis://… or the path of a SQLite file').env(
  'BELFRY_STORE',
)
export const schemaOption = new Option('--schema <name>', 'the Postgres schema, or the prefix of Redis keys')

/** A single letter is the drive of a Windows path. */
const SCHEME = /^([a-z][a-z0-9+.-]+):/i

export function storeLocation({ store = '', schema }: StoreOptions): StoreLocation {
  if (store === '') {
    throw failure(
      'OPTION_INVALID',
      'no store is given: pass --store, or set BELFRY_STORE (postgres://…, redis://… or a file path)',
    )
  }
  const scheme = SCHEME.exec(store)?.[1]?.toLowerCase()
  if (scheme === 'postgres' || scheme === 'postgresql') return postgresLocation(store, schema ?? 'belfry')
  if (scheme === 'redis' || scheme === 'rediss') return redisLocation(store, schema ?? 'belfry')
  if (scheme !== undefined && scheme !== 'sqlite' && scheme !== 'file') {
    throw failure(
      'OPTION_INVALID',
      `--store: there is no store of the kind ${quote(scheme)}: use postgres://…, redis://… or the path of a SQLite file (./${scheme}:… if its name has a colon)`,
    )
  }
  if (schema !== undefined) {
    throw failure('OPTION_INVALID', '--schema is for Postgres and Redis: a SQLite file has none')
  }
  return sqliteLocation(scheme === undefined ? store : pathOf(store))
}

/** The path in `sqlite:belfry.db`, `sqlite:///var/lib/belfry.db` or `file:///var/lib/belfry.db`. */
function pathOf(store: string): string {
  if (/[?#]/.test(store)) {
    throw failure('OPTION_INVALID', `--store: ${quote(store)} has a query or fragment, which a SQLite file has not`)
  }
  const path = /^file:\/\/\//i.test(store) ? fileURLToPath(store) : store.replace(/^[^:]+:(?:\/\/)?/, '')
  if (path !== '') return path
  throw failure('OPTION_INVALID', `--store: ${quote(store)} names no file: write it as sqlite:belfry.db`)
}

/** Opens a store; the caller closes it. Closes it on failure, since its connections would keep the process alive. */
export async function opened(store: Store): Promise<Store> {
  try {
    await store.open()
    return store
  } catch (error) {
    await store.close().catch(() => {})
    throw error
  }
}

function postgresLocation(url: string, schema: string): StoreLocation {
  if (!URL.canParse(url) || !/^[a-z]+:\/\//i.test(url)) {
    throw failure('OPTION_INVALID', 'the URL of --store cannot be read: postgres://user:password@host:5432/database')
  }
  return {
    // Opening a schema without tables fails by itself.
    mustExist: () => {},
    name: `schema ${quote(schema)} on ${new URL(url).host || 'the local server'}`,
    open: async ({ migrate = false } = {}) =>
      (await import('../../stores/postgres/index.js')).postgres({ url, schema, migrate }),
    migrate: async (dryRun) =>
      (await import('../../stores/postgres/index.js')).migratePostgres({ url, schema, dryRun }),
  }
}

/** The options of the Redis store. Several URLs, separated by commas, are nodes of a cluster. */
export function redisOptions({ store = '', schema = 'belfry' }: StoreOptions): RedisOptions {
  if (!/^rediss?:/i.test(store)) throw failure('OPTION_INVALID', 'this is for a Redis store: pass --store redis://…')
  const urls = redisUrls(store)
  const [url = ''] = urls
  return { prefix: `${schema}:`, ...(urls.length > 1 ? { nodes: urls } : { url }) }
}

function redisUrls(text: string): string[] {
  const urls = text.split(',').map((url) => url.trim())
  // The path of the URL is the number of a database.
  if (urls.every((url) => /^rediss?:\/\//i.test(url) && URL.canParse(url) && /^\/?\d*$/.test(new URL(url).pathname)))
    return urls
  throw failure('OPTION_INVALID', 'the URL of --store cannot be read: redis://user:password@host:6379/0')
}

function redisLocation(store: string, schema: string): StoreLocation {
  const urls = redisUrls(store)
  const prefix = `${schema}:`
  const hosts = urls.map((url) => new URL(url).host || 'the local server')
  return {
    // The first write creates the keys, so an empty server is an empty store.
    mustExist: () => {},
    name: `keys ${quote(`${prefix}*`)} on ${hosts.join(', ')}`,
    open: async () => (await import('../../stores/redis/index.js')).redis(redisOptions({ store, schema })),
    migrate: async () => {
      throw failure('OPTION_INVALID', 'there is nothing to migrate on Redis: it has no tables')
    },
  }
}

function sqliteLocation(path: string): StoreLocation {
  return {
    name: `file ${quotePath(path)}`,
    mustExist: () => {
      if (existsSync(path)) return
      throw failure(
        'STORE_UNREACHABLE',
        `there is no file ${quotePath(path)}: belfry migrate --store ${path} creates it`,
      )
    },
    open: async () => (await import('../../stores/sqlite/index.js')).sqlite({ path }),
    migrate: async (dryRun) => (await import('../../stores/sqlite/index.js')).migrateSqlite({ path, dryRun }),
  }
}
