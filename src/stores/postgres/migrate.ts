/** Bringing a schema up to date: asked for, never on the way. Any number of processes may do it at once. */
import { failure, quote } from '../../core/errors.js'
import type { MigrationReport } from '../../core/store.js'
import type { Database } from './connection.js'
import { checkVersion, lockSql, migrationSql, SCHEMA_VERSION } from './schema.js'

/** By the catalogue and not by `to_regclass`, which may answer from before a lock was waited for. */
const EXISTS = `select c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and c.relname = 'meta'`
const VERSION = `select value from belfry.meta where name = 'schema'`

/** The version of a schema; 0 when Belfry has never been there. */
async function schemaVersion(db: Pick<Database, 'read'>, schema: string): Promise<number> {
  const [exists] = await db.read(EXISTS, [schema])
  if (exists === undefined) return 0
  const [version] = await db.read(VERSION)
  return Number(version?.[0] ?? 0)
}

/** Migrates if there is something to do. Whoever comes second waits, and then looks again. */
export async function migrateSchema(db: Database): Promise<MigrationReport> {
  const planned = await planMigration(db, db.schema)
  if (planned.sql === '') return planned
  return db.transaction(lockSql(db.schema), async (_, tx) => {
    const found = await planMigration({ read: (sql, values) => tx.run(sql, values) }, db.schema)
    if (found.sql !== '') await tx.run(found.sql)
    return found
  })
}

/** What migrating would do now. */
export async function planMigration(from: Pick<Database, 'read'>, schema: string): Promise<MigrationReport> {
  const version = await schemaVersion(from, schema)
  checkVersion(version, schema)
  const sql = version < SCHEMA_VERSION ? migrationSql(schema, version) : ''
  return { from: version, to: SCHEMA_VERSION, sql }
}

/** Refuses a schema that is not of this version. */
export async function checkSchemaVersion(db: Database): Promise<void> {
  const version = await schemaVersion(db, db.schema)
  checkVersion(version, db.schema)
  if (version === SCHEMA_VERSION) return
  const found = version === 0 ? 'has no tables of Belfry' : `is of version ${version}, and ${SCHEMA_VERSION} is needed`
  throw failure(
    'STORE_INVALID',
    `the schema ${quote(db.schema)} ${found}: run \`belfry migrate\`, or pass { migrate: true }`,
  )
}
