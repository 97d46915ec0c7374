/**
 * The tables, in versions. Each migration is written once and, once released, never changed again; it only adds, so that
 * the release before goes on working beside this one, and can still be started. `COMPATIBLE` says back to which version
 * that is so.
 *
 * Every operation that locks before it looks is a function in the database, kept in the operation's own module, because
 * only there each statement sees what was committed while it waited for a lock, and only there all of it is one round
 * trip that no stopped process can hold open. Functions have no versions: the schema knows their texts by a hash, and the
 * release that made them. Migrating makes them anew if they differ and no newer release made them, so that two releases
 * side by side do not take turns. The release before calls those of the new one: what a function takes and answers
 * never changes under its name.
 *
 * States are numbers so that partial indexes are small: 0 waiting, 1 ready or, with `running`, under way, 2 under way for
 * longer, from 3 on ended. What a waiting run waits for: 1 its stamp, 2 others of its schedule, 3 its key. Instants are
 * milliseconds since 1970.
 *
 * All SQL says `belfry.` for the schema; `inSchema` puts the real one there.
 */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { failure, quote } from '../../core/errors.js'
import { CLAIM_FUNCTIONS } from './claim.js'
import { PROOF_TABLES } from './connection/proof-sql.js'
import { ENQUEUE_FUNCTIONS } from './enqueue.js'
import { INSTANCE_FUNCTIONS } from './instances.js'
import { LEASE_FUNCTIONS } from './leases.js'
import { LOCK_FUNCTIONS } from './lock-order.js'
import { NAME_FUNCTIONS } from './names.js'
import { PRUNE_FUNCTIONS } from './prune.js'
import { RECORD_FUNCTIONS } from './record-plans.js'
import { RECORD_TABLES } from './records.js'
import { RESCUE_FUNCTIONS } from './rescue.js'
import { RUN_ENDING_FUNCTIONS } from './run-endings.js'
import { RUN_FUNCTIONS } from './runs.js'
import { SCHEDULE_FUNCTIONS } from './schedules.js'
import { SETTLE_FUNCTIONS } from './settle.js'
import { TABLES } from './tables.js'
import { TAKE_RUNS_FUNCTIONS } from './take-runs.js'
import { COMMIT_RUN_FUNCTION } from './transactions/commit-run.js'
import { DURABLE_FUNCTION } from './transactions/durable.js'
import { ENQUEUE_INSIDE_FUNCTION } from './transactions/enqueue-inside.js'
import { LINE_TABLES } from './waiting-line.js'

const FUNCTIONS = [
  DURABLE_FUNCTION,
  LOCK_FUNCTIONS,
  NAME_FUNCTIONS,
  RUN_ENDING_FUNCTIONS,
  SCHEDULE_FUNCTIONS,
  RECORD_FUNCTIONS,
  ENQUEUE_FUNCTIONS,
  ENQUEUE_INSIDE_FUNCTION,
  CLAIM_FUNCTIONS,
  SETTLE_FUNCTIONS,
  COMMIT_RUN_FUNCTION,
  RUN_FUNCTIONS,
  TAKE_RUNS_FUNCTIONS,
  RESCUE_FUNCTIONS,
  PRUNE_FUNCTIONS,
  LEASE_FUNCTIONS,
  INSTANCE_FUNCTIONS,
].join('\n')

const MIGRATIONS: readonly string[] = [TABLES, PROOF_TABLES, RECORD_TABLES, LINE_TABLES]

export const SCHEMA_VERSION = MIGRATIONS.length

/** What fits into a number, of the functions' texts. */
export const FUNCTIONS_HASH = Number.parseInt(createHash('sha256').update(FUNCTIONS).digest('hex').slice(0, 13), 16)

/** This release as a number that grows from release to release. */
export const RELEASE = releaseNumber(
  (createRequire(import.meta.url)('../../../package.json') as { readonly version: string }).version,
)

export function releaseNumber(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.+-]/, 3).map(Number)
  return (major * 10_000 + minor) * 10_000 + patch
}

/** The oldest version whose code works on these tables. Raised only with a major release. */
const COMPATIBLE = 2

const NAME = /^[a-z_][a-z0-9_]{0,47}$/

/** Lower-case letters, digits and underscores: a name that needs no quoting cannot break out of it either. */
export function checkSchema(schema: string): string {
  if (NAME.test(schema) && !schema.startsWith('pg_') && schema !== 'information_schema') return schema
  throw failure(
    'OPTION_INVALID',
    `schema ${quote(schema)} is not allowed: use 1 to 48 lower-case letters, digits and underscores, not beginning with a digit or pg_`,
  )
}

/** SQL that is written for the schema `belfry`, for another one. The quotes are for names that are also keywords. */
export function inSchema(sql: string, schema: string): string {
  return schema === 'belfry' ? sql : sql.replaceAll(/\bbelfry\./g, `"${schema}".`)
}

/** Whoever comes second waits for the first, and then finds nothing left to do. */
const LOCK = 'select pg_advisory_xact_lock(7237132, hashtext(:schema))'

/**
 * The statements that bring a schema from a version to this one, to be run in one transaction. To make a schema takes a
 * right on the database, even if it is there: so one that is known to be there is not made.
 */
export function migrationSql(schema: string, { from = 0, isThere = false } = {}): string {
  checkSchema(schema)
  const steps = [...MIGRATIONS.slice(from), FUNCTIONS].map((sql) => inSchema(sql, schema))
  return [
    LOCK.replace(':schema', `'${schema}'`),
    ...(isThere ? [] : [`create schema if not exists "${schema}"`]),
    ...(from > 0 ? [] : [`create table "${schema}".meta (name text primary key, value bigint not null)`]),
    ...steps.map((sql) => sql.trim().replace(/;$/, '')),
    `insert into "${schema}".meta values ('schema', ${SCHEMA_VERSION}), ('compatible', ${COMPATIBLE}),
    ('functions', ${FUNCTIONS_HASH}), ('release', ${RELEASE})
  on conflict (name) do update set value = excluded.value`,
  ]
    .map((sql) => `${sql};\n`)
    .join('\n')
}

const NAMED = /create (?:table|sequence|(?:unique )?index) (?:belfry\.)?(\w+)/g

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

export const lockSql = (schema: string): string => LOCK.replace(':schema', `'${checkSchema(schema)}'`)

/** Refuses a schema that a newer Belfry has written: it may hold what this one would not see. */
export function checkVersion(version: number, schema: string): void {
  if (version <= SCHEMA_VERSION) return
  throw failure(
    'STORE_INVALID',
    `the schema ${quote(schema)} was written by a newer Belfry (version ${version}, this one knows ${SCHEMA_VERSION}): upgrade belfry here too`,
  )
}
