/**
 * Migrates a schema, only when asked to: by `belfry migrate` or the option `migrate`. Any number of processes may
 * migrate at once.
 */
import { BelfryError, failure, quote } from '../../../core/errors.js'
import type { MigrationReport } from '../../../core/store.js'
import type { Database } from '../connection/database.js'
import { sqlState } from '../connection/errors.js'
import {
  checkVersion,
  FUNCTIONS_HASH,
  lockSql,
  migrationSql,
  RELATIONS,
  RELEASE,
  SCHEMA_VERSION,
} from './migration-sql.js'

type Reader = Pick<Database, 'read'>

/**
 * Reads the catalogue's tables and not `to_regclass`, which may return what was true before this transaction waited for
 * the migration lock.
 */
const LOOK = `select n.oid is not null, current_user, pg_catalog.current_database(),
  (select pg_catalog.string_agg(a.attname || ' ' || pg_catalog.format_type(a.atttypid, null), ', ' order by a.attnum)
    from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = n.oid and c.relname = 'meta'),
  (select pg_catalog.min(c.relname) from pg_catalog.pg_class c where c.relnamespace = n.oid and c.relname = any ($2::text[])),
  (select pg_catalog.string_agg(c.relname, ', ' order by c.relname) from pg_catalog.pg_class c
    where c.relnamespace = n.oid and c.relname = any ($2::text[]) and pg_catalog.row_security_active(c.oid)
      and not exists (select from pg_catalog.pg_policy p where p.polrelid = c.oid))
  from (select 1) one left join pg_catalog.pg_namespace n on n.nspname = $1`
const OUR_META = 'name text, value bigint'
const META = 'select name, value from belfry.meta'

/** What `look` finds in the database. */
interface Found {
  /** Whether the schema exists, with or without tables of Belfry. */
  readonly isThere: boolean
  /** 0 if the schema has no tables of Belfry. */
  readonly version: number
  /** The oldest version whose code works on this schema's tables. */
  readonly compatible: number
  /** The hash of the schema's functions, and the release that created them. */
  readonly functions: number
  readonly release: number
  /** The current role and database, for error messages. */
  readonly user: string
  readonly database: string
}

async function look(db: Reader, schema: string): Promise<Found> {
  const [[isThere, user, database, columns, ours, hidden] = []] = await db.read(LOOK, [schema, RELATIONS])
  const who = { isThere: isThere === 't', user: user ?? '', database: database ?? '' }
  const nothing = { version: 0, compatible: 0, functions: 0, release: 0 }
  if (columns !== OUR_META) {
    if (ours !== null && ours !== undefined) throw strange(schema, ours)
    return { ...who, ...nothing }
  }
  if (hidden !== null && hidden !== undefined) throw hiddenRows(schema, hidden, who.user)
  const meta = new Map((await db.read(META)).map(([name, value]) => [name, Number(value)]))
  const version = meta.get('schema')
  if (version === undefined) throw strange(schema, 'meta')
  const { functions, release } = { functions: meta.get('functions') ?? 0, release: meta.get('release') ?? 0 }
  return { ...who, version, compatible: meta.get('compatible') ?? version, functions, release }
}

function strange(schema: string, name: string): BelfryError {
  return failure(
    'STORE_INVALID',
    `the schema ${quote(schema)} has a ${quote(name)} that Belfry did not make: give Belfry a schema of its own, with { schema } or --schema`,
  )
}

function hiddenRows(schema: string, tables: string, user: string): BelfryError {
  return failure(
    'STORE_INVALID',
    `row-level security hides all rows of the role "${user}" in the schema ${quote(schema)} (${tables}), because no policy lets it see any: alter table … disable row level security, or alter role "${user}" bypassrls`,
  )
}

/** Migrates the schema if it is out of date. A second process waits for the first one's lock, and then checks again. */
export async function migrateSchema(db: Database): Promise<MigrationReport> {
  const found = await look(db, db.schema)
  const planned = plan(found, db.schema)
  if (planned.sql === '') return planned
  try {
    return await db.transaction(lockSql(db.schema), async (_, tx) => {
      const again = await planMigration({ read: (sql, values) => tx.run(sql, values) }, db.schema)
      if (again.sql !== '') await tx.run(again.sql)
      return again
    })
  } catch (error) {
    throw error instanceof BelfryError && sqlState(error.cause) === NOT_ALLOWED
      ? notAllowed(error, found, db.schema)
      : error
  }
}

/** What a migration would do now. */
export async function planMigration(db: Reader, schema: string): Promise<MigrationReport> {
  return plan(await look(db, schema), schema)
}

function plan(found: Found, schema: string): MigrationReport {
  const { version, isThere } = found
  checkVersion(version, schema)
  const isDue = version < SCHEMA_VERSION || hasOlderFunctions(found)
  return { from: version, to: SCHEMA_VERSION, sql: isDue ? migrationSql(schema, { from: version, isThere }) : '' }
}

/** Functions of a newer release are kept: they work for this release, too. */
function hasOlderFunctions({ version, functions, release }: Found): boolean {
  return version === SCHEMA_VERSION && functions !== FUNCTIONS_HASH && release <= RELEASE
}

const NOT_ALLOWED = '42501'

function notAllowed(cause: BelfryError, { isThere, version, user, database }: Found, schema: string): BelfryError {
  const [role, place] = [`"${user}"`, `"${schema}"`]
  const grant = isThere
    ? `grant usage, create on schema ${place} to ${role}`
    : `grant create on database "${database}" to ${role}; or make the schema for it: create schema ${place} authorization ${role}`
  const what = version === 0 ? grant : `migrate as the role that made the tables; or ${grant}, and make it their owner`
  return failure(
    'STORE_INVALID',
    `the role ${role} may not migrate the schema ${place}: ${what} (${messageOf(cause)})`,
    {
      cause,
    },
  )
}

function messageOf({ cause }: BelfryError): string {
  return cause instanceof Error ? cause.message : String(cause)
}

/**
 * Refuses a schema that this release does not work on. A schema of a newer release is accepted if that only added to
 * it.
 */
export async function checkSchemaVersion(db: Database): Promise<void> {
  const found = await look(db, db.schema)
  const { version, compatible } = found
  if (compatible > SCHEMA_VERSION) checkVersion(version, db.schema)
  if (version >= SCHEMA_VERSION && !hasOlderFunctions(found)) return
  throw failure(
    'STORE_INVALID',
    `the schema ${quote(db.schema)} ${lacking(version)}: run \`belfry migrate\`, or pass { migrate: true }`,
  )
}

function lacking(version: number): string {
  if (version === 0) return 'has no tables of Belfry'
  return version < SCHEMA_VERSION
    ? `is of version ${version}, and ${SCHEMA_VERSION} is needed`
    : 'has the functions of an older release'
}
