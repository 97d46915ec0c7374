/**
 * The SQL that makes and migrates a schema.
 *
 * The tables have versions. Each migration is written once and, once released, never changed again; it only adds, so that
 * the release before goes on working beside this one, and can still be started. `COMPATIBLE` says back to which version
 * that is so.
 *
 * Functions have no versions: the schema knows their texts by a hash, and the release that made them. Migrating makes them
 * anew if they differ and no newer release made them, so that two releases side by side do not take turns. The release
 * before calls the functions of the new one: what a function takes and answers never changes under its name.
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

/** What fits into a number, of the functions' texts. */
export const FUNCTIONS_HASH = Number.parseInt(createHash('sha256').update(FUNCTIONS).digest('hex').slice(0, 13), 16)

/** This release as a number that grows from release to release. */
export const RELEASE = releaseNumber(
  (createRequire(import.meta.url)('../../../../package.json') as { readonly version: string }).version,
)

export function releaseNumber(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/, 3).map(Number)
  return (major * 10_000 + minor) * 10_000 + patch
}

/** Concurrent migrations queue here; each then looks again and finds nothing left to do. */
export function lockSql(schema: string): string {
  return `select pg_catalog.pg_advisory_xact_lock(7237132, pg_catalog.hashtext('${checkSchema(schema)}'))`
}

/**
 * The statements that bring a schema from a version to this one, to be run in one transaction. To make a schema takes a
 * right on the database, even if it is there: so one that is known to be there is not made.
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

/** What of ours stands in the catalogue, by name. */
export const RELATIONS: readonly string[] = [
  'meta',
  ...Array.from(MIGRATIONS.join('\n').matchAll(NAMED), ([, name = '']) => name),
]

/** The statements that make our indexes, by their names. */
export const INDEXES: ReadonlyMap<string, string> = new Map(
  Array.from(MIGRATIONS.join('\n').matchAll(/create (?:unique )?index (\w+) on [^;]+/g), ([sql, name = '']) => [
    name,
    sql.replaceAll(/\s+/g, ' ').trim(),
  ]),
)

/** Refuses a schema that a newer Belfry has written: it may hold what this one would not see. */
export function checkVersion(version: number, schema: string): void {
  if (version <= SCHEMA_VERSION) return
  throw failure(
    'STORE_INVALID',
    `the schema ${quote(schema)} was written by a newer Belfry (version ${version}, this one knows ${SCHEMA_VERSION}): upgrade belfry here too`,
  )
}
