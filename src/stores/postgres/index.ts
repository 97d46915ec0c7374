/**
 * The Postgres store: schedules, runs and locks in the database that the app already has. Postgres 14 and newer.
 *
 * `connection/database.ts` says how operations reach the database, `transactions/transact.ts` how a handler's own
 * transaction commits with its run.
 */
import { systemClock } from '../../core/clock.js'
import type { MigrationReport, Store } from '../../core/store.js'
import { Database } from './connection/database.js'
import { DirectConnection } from './connection/direct-connection.js'
import { newClient, type PgPool } from './connection/driver.js'
import { Listener } from './connection/listener.js'
import { poolOf } from './connection/pool.js'
import { ProofOfLife } from './connection/proof-of-life.js'
import { reopen } from './connection/reopen.js'
import { ServerIdentity } from './connection/server-identity.js'
import { type Change, Wakes } from './connection/wakes.js'
import {
  checkMigrateOptions,
  checkPostgresOptions,
  directUrlOf,
  type MigrateOptions,
  type PostgresOptions,
} from './options.js'
import { checkSchemaVersion, migrateSchema, planMigration } from './schema/migrate.js'
import { migrationSql } from './schema/migration-sql.js'
import { operationsOn } from './store.js'
import type { PostgresTransaction } from './transactions/handler-client.js'

export type { PgClient, PgPool } from './connection/driver.js'
export type { Liveness, MigrateOptions, PostgresOptions } from './options.js'
export type { CallerTransaction } from './transactions/adapters/caller-transaction.js'
export { fromDrizzle } from './transactions/adapters/drizzle.js'
export { fromKnex } from './transactions/adapters/knex.js'
export { fromKysely } from './transactions/adapters/kysely.js'
export { fromPrisma } from './transactions/adapters/prisma.js'
export type { PostgresTransaction } from './transactions/handler-client.js'

export function postgres(options: PostgresOptions): Store<PostgresTransaction> {
  checkPostgresOptions(options)
  const { schema = 'belfry', migrate = false, clock = systemClock, listen = true } = options
  const directUrl = directUrlOf(options)
  const pool = poolOf(options)
  const channel = `belfry_${schema}`
  const self = globalThis.crypto.randomUUID()

  const notify = async (changes: readonly Change[]) => {
    await db.read(NOTIFY, [channel, [self, ...changes].join(' ')]).catch(() => {})
  }
  // Other processes may listen even where this one cannot, so hints are sent unless listening is switched off.
  const wakes = new Wakes(clock, listen ? notify : undefined)
  const proof =
    options.liveness === 'advisory'
      ? new ProofOfLife({
          ...{ clock, database: () => db, direct: () => direct },
          option: options.direct === undefined ? 'url' : 'direct',
        })
      : undefined
  const identity = new ServerIdentity()
  const db: Database = new Database({
    ...{ pool: pool.used, schema, clock, identity, announce: wakes.announce, onSilence: () => direct.probe() },
    ...(proof === undefined ? {} : { proof }),
    ...(listen ? { channel } : {}),
  })
  const listener =
    listen && directUrl !== undefined
      ? new Listener({
          ...{ channel, self },
          heard: (changes) => wakes.heard(changes),
          handed: ({ holder }) => wakes.handedTo(holder),
        })
      : undefined
  const direct = new DirectConnection({
    ...{ open: () => newClient(directUrl ?? ''), clock, mustConnect: proof !== undefined },
    uses: [proof, listener].filter((use) => use !== undefined),
  })

  return {
    ...operationsOn(db, wakes),
    supports: { transactions: true, wakeups: listener !== undefined, durable: true, shared: true },
    subscribe: wakes.subscribe,
    onWarning: identity.onWarning,
    ...(proof === undefined ? {} : { onLost: proof.onLost }),
    ...(clock === systemClock ? { reopen: () => reopen(options, identity, proof) } : {}),
    async open() {
      await db.checkServer()
      if (migrate) await migrateSchema(migrationDatabase(pool.used, schema))
      else await checkSchemaVersion(db)
      // `proof.number()` opens the direct connection, and throws when that fails.
      if (proof !== undefined) await proof.number()
      else if (listener !== undefined) await direct.open()
    },
    async close() {
      wakes.close()
      proof?.close()
      await direct.close()
      await pool.leave()
    },
  }
}

const NOTIFY = 'select pg_catalog.pg_notify($1, $2)'

/** Migrates without opening a store. The command `belfry migrate` calls this. */
export async function migratePostgres(options: MigrateOptions): Promise<MigrationReport> {
  checkMigrateOptions(options)
  const { schema = 'belfry', dryRun = false } = options
  const pool = poolOf(options)
  const db = migrationDatabase(pool.used, schema)
  try {
    await db.checkServer()
    return await (dryRun ? planMigration(db, schema) : migrateSchema(db))
  } finally {
    await pool.leave()
  }
}

/** The SQL that creates the schema in an empty database, for review or to run by hand in one transaction. */
export function postgresMigrationSql(schema = 'belfry'): string {
  return migrationSql(schema)
}

/** The limit of each statement of a migration. Creating an index on a large table takes minutes. */
const MIGRATION_LIMIT_MS = 3_600_000

function migrationDatabase(pool: PgPool, schema: string): Database {
  return new Database({ pool, schema, clock: systemClock, limitMs: MIGRATION_LIMIT_MS })
}
