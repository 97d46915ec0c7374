/**
 * The SQL that creates and migrates a schema.
 *
 * The tables have versions. A migration never changes once it is released. It only adds, so that the previous release
 * keeps working beside this one, and can still be started. `COMPATIBLE` is the oldest version for which that holds.
 *
 * Functions have no versions. The table `meta` holds a hash of their source, and the release that created them. A
 * migration replaces them if the hash differs and no newer release created them, so that two releases side by side do
 * not replace them in turn. The previous release calls the functions of the new one, so a function's parameters and
 * results never change under the same name.
 */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { failure, quote } from '../../../core/errors.js'
import { FUNCTIONS } from './functions.js'
import indexes from './indexes.sql'
import { checkSchema, inSchema } from './schema-name.js'
import tables from './tables.sql'
import types from './types.sql'
import views from './views.sql'

const MIGRATIONS: readonly string[] = [[types, tables, indexes, views].join('\n')]

export const SCHEMA_VERSION = MIGRATIONS.length

/** The oldest version whose code works on these tables. Raised only with a major release. */
const COMPATIBLE = 1

/** A hash of the functions' source, cut to 13 hexadecimal digits so that a number holds it exactly. */
export const FUNCTIONS_HASH = Number.parseInt(createHash('sha256').update(FUNCTIONS).digest('hex').slice(0, 13), 16)

/** This release as a number that grows from release to release. */
export const RELEASE = releaseNumber(
  (createRequire(import.meta.url)('../../../../package.json') as { readonly version: string }).version,
)

export function releaseNumber(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/, 3).map(Number)
  return (major * 10_000 + minor) * 10_000 + patch
}

/** Concurrent migrations wait for this lock. Each then checks again, and finds nothing left to do. */
export function lockSql(schema: string): string {
  return `select pg_catalog.pg_advisory_xact_lock(7237132, pg_catalog.hashtext('${checkSchema(schema)}'))`
}

/**
 * The statements that migrate a schema from a version to this one, to be run in one transaction. `create schema if not
 * exists` needs the right to create schemas even if the schema exists, so it is left out with `isThere`.
 */
export function migrationSql(schema: string, { from = 0, isThere = false } = {}): string {
  checkSchema(schema)
  return [
    'set local search_path = pg_catalog, pg_temp',
    lockSql(schema),
    ...(isThere ? [] : [`create schema if not exists "${schema}"`]),
    ...(from > 0 ? [] : [`create table "${schema}".meta (name text primary key, value bigint not null)`]),
    ...[...MIGRATIONS.slice(from), FUNCTIONS].map((sql) => inSchema(sql, schema).trim().replace(/;$/, '')),
    `insert into "${schema}".meta values ('schema', ${SCHEMA_VERSION}), ('compatible', ${COMPATIBLE}),
    ('functions', ${FUNCTIONS_HASH}), ('release', ${RELEASE})
  on conflict (name) do update set value = excluded.value`,
  ]
    .map((sql) => `${sql};\n`)
    .join('\n')
}

const NAMED = /create (?:table|sequence|view|type|(?:unique )?index) (?:belfry\.)?(\w+)/g

/** The names of all tables, sequences, views, types and indexes that Belfry creates. */
export const RELATIONS: readonly string[] = [
  'meta',
  ...Array.from(MIGRATIONS.join('\n').matchAll(NAMED), ([, name = '']) => name),
]

/** The statements that create Belfry's indexes, by index name. */
export const INDEXES: ReadonlyMap<string, string> = new Map(
  Array.from(MIGRATIONS.join('\n').matchAll(/create (?:unique )?index (\w+) on [^;]+/g), ([sql, name = '']) => [
    name,
    sql.replaceAll(/\s+/g, ' ').trim(),
  ]),
)

/** Refuses a schema that a newer Belfry has migrated: it may hold data that this release does not see. */
export function checkVersion(version: number, schema: string): void {
  if (version <= SCHEMA_VERSION) return
  throw failure(
    'STORE_INVALID',
    `the schema ${quote(schema)} was written by a newer Belfry (version ${version}, this one knows ${SCHEMA_VERSION}): upgrade belfry here too`,
  )
}
