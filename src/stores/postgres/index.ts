/**
 * The Postgres store: schedules, runs and locks in the database that the app already has. Postgres 13 and newer.
 *
 * Every operation is one statement, or one short transaction; time is the database's; and nothing of a session is relied
 * on, so all of it works through a pooler in transaction mode. Only LISTEN and the advisory mode need a connection that
 * stays.
 */
import { systemClock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { MigrationReport, Store } from '../../core/store.js'
import { checkServer } from './connection/check-server.js'
import { Database, type PgPool } from './connection/database.js'
import { DirectConnection } from './connection/direct-connection.js'
import { newClient } from './connection/driver.js'
import { expectConnection } from './connection/expect-connection.js'
import { Listener } from './connection/listener.js'
import { poolOf } from './connection/pool.js'
import { Proof } from './connection/proof-of-life.js'
import { reopen } from './connection/reopen.js'
import { type Change, Wakes } from './connection/wakes.js'
import type { Handed } from './lease-row.js'
import { LockLines } from './lock-lines.js'
import { checkSchemaVersion, migrateSchema, planMigration } from './migrate.js'
import { checkMigrateOptions, checkPostgresOptions, type MigrateOptions, type PostgresOptions } from './options.js'
import { migrationSql } from './schema.js'
import { operationsOn } from './store.js'

export type { PgClient, PgPool } from './connection/database.js'
export type { Liveness, MigrateOptions, PostgresOptions } from './options.js'
export type { PostgresTx } from './transactions/adapters/caller-transaction.js'
export { fromDrizzle } from './transactions/adapters/drizzle.js'
export { fromKnex } from './transactions/adapters/knex.js'
export { fromKysely } from './transactions/adapters/kysely.js'
export { fromPrisma } from './transactions/adapters/prisma.js'
export type { PostgresTransaction } from './transactions/handler-client.js'

export function postgres(options: PostgresOptions): Store {
  checkPostgresOptions(options)
  const { schema = 'belfry', migrate = false, clock = systemClock } = options
  const directUrl = checkDirect(options)
  const pool = poolOf(options)
  const self = globalThis.crypto.randomUUID()
  const channel = `belfry_${schema}`
  const notify = async (changes: readonly Change[]) => {
    await db.read(NOTIFY, [channel, [self, ...changes].join(' ')]).catch(() => {})
  }
  // A hint to nobody costs a round trip, but this process cannot know whether others listen.
  const wakes = new Wakes(clock, options.listen === false ? undefined : notify)
  const proves = options.liveness === 'advisory'
  const proof = proves
    ? new Proof({
        clock,
        database: () => db,
        direct: () => direct,
        option: options.direct === undefined ? 'url' : 'direct',
      })
    : undefined
  const db: Database = new Database({
    ...{ pool: pool.used, schema, clock, announce: wakes.announce },
    ...(proof === undefined ? {} : { proof }),
    ...(options.listen === false ? {} : { channel }),
  })
  const lines = new LockLines(db, wakes)
  const listens = options.listen !== false && directUrl !== undefined
  const hears = {
    heard: (changes?: readonly Change[]) => wakes.heard(changes),
    handed: (lease: Handed) => lines.handedElsewhere(lease),
  }
  const listener = listens ? new Listener({ channel, self, ...hears }) : undefined
  const uses = [proof, listener].filter((use): use is Proof | Listener => use !== undefined)
  const direct = new DirectConnection({ open: () => newClient(directUrl ?? ''), clock, uses, insist: proves })

  return {
    ...operationsOn(db, lines),
    supports: { transactions: true, wakeups: listens, durable: true, shared: true },
    subscribe: wakes.subscribe,
    ...(proof === undefined ? {} : { onLost: proof.onLost }),
    ...(clock === systemClock ? { reopen: () => reopen(options, proof) } : {}),
    async open() {
      await expectConnection(pool.used, clock)
      await checkServer(db)
      await db.findSession()
      if (migrate) await migrateSchema(patient(pool.used, schema))
      else await checkSchemaVersion(db)
      if (listens && !proves) await direct.open()
      await proof?.number()
    },
    async close() {
      wakes.close()
      proof?.close()
      await direct.close()
      await pool.leave()
    },
  }
}

/** Migrates without opening a store: what `belfry migrate` does. */
export async function migratePostgres(options: MigrateOptions): Promise<MigrationReport> {
  checkMigrateOptions(options)
  const { schema = 'belfry', dryRun = false } = options
  const pool = poolOf(options)
  const db = patient(pool.used, schema)
  try {
    await checkServer(db)
    return await (dryRun ? planMigration(db, schema) : migrateSchema(db))
  } finally {
    await pool.leave()
  }
}

/** The SQL that makes an empty schema, for those who want to read it first or run it themselves, in one transaction. */
export function postgresMigrationSql(schema = 'belfry'): string {
  return migrationSql(schema)
}

const NOTIFY = 'select pg_notify($1, $2)'

/** An index on a large table takes minutes. A connection that is silent for longer than this is given up. */
const MIGRATION_LIMIT_MS = 3_600_000

function patient(pool: PgPool, schema: string): Database {
  return new Database({ pool, schema, clock: systemClock, announce: () => {}, limitMs: MIGRATION_LIMIT_MS })
}

/** Where the connection that stays goes to, if there is to be one. */
function checkDirect({ direct, url, listen, liveness = 'lease' }: PostgresOptions): string | undefined {
  const found = direct ?? url
  if (found === undefined && (listen || liveness === 'advisory')) {
    const purpose = listen ? 'to listen' : 'for the advisory mode'
    throw failure(
      'OPTION_INVALID',
      `${purpose}, the Postgres store needs a connection of its own: pass \`direct\` with a URL that reaches the server itself`,
    )
  }
  return found
}
