/** Bringing a schema up to date: asked for, never on the way. Any number of processes may do it at once. */
import { failure, quote } from '../../core/errors.js'
import type { MigrationReport } from '../../core/store.js'
import type { Database } from './connection.js'
import { checkVersion, lockSql, migrationSql, SCHEMA_VERSION } from './schema.js'

/** By the catalogue and not by `to_regclass`, which may answer from before a lock was waited for. */
const EXISTS = `select c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and c.relname = 'meta'`
const VERSIONS = `select (select value from belfry.meta where name = 'schema'),
  (select value from belfry.meta where name = 'compatible')`

/** A schema's version, 0 when Belfry has never been there; and the oldest whose code works on it. */
interface Versions {
  readonly version: number
  readonly compatible: number
}

async function schemaVersions(db: Pick<Database, 'read'>, schema: string): Promise<Versions> {
  const [exists] = await db.read(EXISTS, [schema])
  if (exists === undefined) return { version: 0, compatible: 0 }
  const [[version, compatible] = []] = await db.read(VERSIONS)
  return { version: Number(version ?? 0), compatible: Number(compatible ?? version ?? 0) }
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
  const { version } = await schemaVersions(from, schema)
  checkVersion(version, schema)
  const sql = version < SCHEMA_VERSION ? migrationSql(schema, version) : ''
  return { from: version, to: SCHEMA_VERSION, sql }
}

/** Refuses a schema that this version does not work on. One that a newer release has only added to is none of those. */
export async function checkSchemaVersion(db: Database): Promise<void> {
  const { version, compatible } = await schemaVersions(db, db.schema)
  if (compatible > SCHEMA_VERSION) checkVersion(version, db.schema)
  if (version >= SCHEMA_VERSION) return
  const found = version === 0 ? 'has no tables of Belfry' : `is of version ${version}, and ${SCHEMA_VERSION} is needed`
  throw failure(
    'STORE_INVALID',
    `the schema ${quote(db.schema)} ${found}: run \`belfry migrate\`, or pass { migrate: true }`,
  )
}
