/**
 * The Postgres store: schedules, runs and locks in the database that the app already has. Postgres 13 and newer.
 *
 * Every operation is one statement, or one short transaction; time is the database's; and nothing of a session is relied
 * on, so all of it works through a pooler in transaction mode. Only LISTEN needs a connection that stays.
 */
import { createRequire } from 'node:module'
import { type Clock, systemClock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Store } from '../../core/store.js'
import { checkServer } from './check-server.js'
import { Database, type PgPool } from './connection.js'
import { type ListenClient, Listener } from './listener.js'
import { checkSchemaVersion, migrateSchema } from './migrate.js'
import { checkSchema, migrationSql } from './schema.js'
import { operationsOn } from './store.js'
import { Wakes } from './wakes.js'

export { fromDrizzle } from './adapters/drizzle.js'
export { fromKnex } from './adapters/knex.js'
export { fromKysely } from './adapters/kysely.js'
export { fromPrisma } from './adapters/prisma.js'
export type { PostgresTx } from './callers-transaction.js'
export type { PgClient, PgPool } from './connection.js'
export type { PostgresTransaction } from './handler-client.js'

export interface PostgresOptions {
  /** A pool of `pg`, or of anything that follows it. It stays yours: closing the store does not end it. */
  readonly pool?: PgPool
  /** Instead of a pool: where the database is. Needs `pg`. */
  readonly url?: string
  /** A direct connection for LISTEN, where the pool or the URL goes through a pooler. */
  readonly direct?: string
  /** The schema that everything lives in. */
  readonly schema?: string
  /** Whether to hear at once of what other processes do. By default, where there is a URL to connect to. */
  readonly listen?: boolean
  /** Whether to bring the tables up to date when it is opened. */
  readonly migrate?: boolean
  /** For the timers of retries and hints; the system's by default. The store's time is the database's. */
  readonly clock?: Clock
}

export function postgres(options: PostgresOptions): Store {
  const { schema = 'belfry', migrate = false, clock = systemClock } = options
  checkSchema(schema)
  const { pool, ends } = poolOf(options)
  const listenTo = listenUrl(options)
  const self = globalThis.crypto.randomUUID()
  const channel = `belfry_${schema}`
  const notify = (bits: number) => void db.read(NOTIFY, [channel, `${self} ${bits}`]).catch(() => {})
  // A hint to nobody costs a round trip, but this process cannot know whether others listen.
  const wakes = new Wakes(clock, options.listen === false ? undefined : notify)
  const hints = options.listen === false ? {} : { channel }
  const db: Database = new Database({ pool, schema, clock, announce: wakes.announce, ...hints })
  const heard = (bits: number) => wakes.heard(bits)
  const listener =
    listenTo === undefined ? undefined : new Listener({ open: () => newClient(listenTo), channel, self, clock, heard })

  return {
    ...operationsOn(db),
    supports: { transactions: true, wakeups: listener !== undefined, durable: true, shared: true },
    subscribe: wakes.subscribe,
    async open() {
      await checkServer(db)
      if (migrate) await migrateSchema(db)
      else await checkSchemaVersion(db)
      await listener?.open()
    },
    async close() {
      wakes.close()
      await listener?.close()
      if (ends) await pool.end()
    },
  }
}

/** Migrates without opening a store: what `belfry migrate` does. */
export async function migratePostgres(options: Pick<PostgresOptions, 'pool' | 'url' | 'schema'>): Promise<void> {
  const { schema = 'belfry' } = options
  checkSchema(schema)
  const { pool, ends } = poolOf(options)
  try {
    await migrateSchema(new Database({ pool, schema, clock: systemClock, announce: () => {} }))
  } finally {
    if (ends) await pool.end()
  }
}

/** The SQL that makes an empty schema, for those who want to read it first or run it themselves, in one transaction. */
export function postgresMigrationSql(schema = 'belfry'): string {
  return migrationSql(schema)
}

const NOTIFY = 'select pg_notify($1, $2)'

/** A pool may serve one store after another: it is listened to once. */
const heeded = new WeakSet<PgPool>()

function poolOf({ pool, url }: PostgresOptions): { readonly pool: PgPool; readonly ends: boolean } {
  if ((pool === undefined) === (url === undefined)) {
    throw failure('OPTION_INVALID', 'the Postgres store needs either a pool or a url')
  }
  const used = pool ?? new (loadPg().Pool)({ connectionString: url ?? '', max: 10 })
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  if (!heeded.has(used)) used.on('error', () => {})
  heeded.add(used)
  return { pool: used, ends: pool === undefined }
}

function listenUrl({ direct, url, listen }: PostgresOptions): string | undefined {
  if (listen === false) return undefined
  const found = direct ?? url
  if (found === undefined && listen) {
    throw failure(
      'OPTION_INVALID',
      'to listen, the Postgres store needs a connection of its own: pass `direct` with a URL',
    )
  }
  return found
}

function newClient(url: string): ListenClient {
  return new (loadPg().Client)({ connectionString: url, keepAlive: true })
}

interface Pg {
  readonly Pool: new (options: { readonly connectionString: string; readonly max: number }) => PgPool
  readonly Client: new (options: { readonly connectionString: string; readonly keepAlive: boolean }) => ListenClient
}

function loadPg(): Pg {
  try {
    return createRequire(import.meta.url)('pg') as Pg
  } catch (cause) {
    throw failure('UNSUPPORTED', 'the Postgres store needs the driver `pg` for a url: npm install pg', { cause })
  }
}
