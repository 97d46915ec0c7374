/**
 * The tables, in versions. Each migration is written once and never changed again. A store brings its file up to date when
 * it opens it, under the write lock, so that any number of processes may start at once; `belfry migrate` does the same.
 */
import { failure, quote } from '../../../core/errors.js'
import type { Connection } from '../connection/connection.js'
import { type Nothing, row, statement } from '../connection/statements.js'
import indexes from './indexes.sql'
import source from './migrate.sql'
import tables from './tables.sql'
import views from './views.sql'

const MIGRATIONS: readonly string[] = [`${tables}\n${indexes}\n${views}`]

export const SCHEMA_VERSION = MIGRATIONS.length

const ALL = MIGRATIONS.join('\n')
const NAMES = Array.from(ALL.matchAll(/^create (?:table|view|(?:unique )?index) (belfry_\w+)/gm), ([, name]) => name)

/** The statements that make our indexes, by their names. */
export const INDEXES: ReadonlyMap<string, string> = new Map(
  Array.from(ALL.matchAll(/^create (?:unique )?index (belfry_\w+) on [^;]+/gm), ([sql, name = '']) => [
    name,
    sql.replaceAll(/\s+/g, ' ').trim(),
  ]),
)

const existing = row<{ names: string }, { name: string | null }>(source, 'existing')
const metaColumns = row<Nothing, { columns: string | null }>(source, 'metaColumns')
const makeMeta = statement(source, 'makeMeta')
const versionOf = row<Nothing, { value: number }>(source, 'versionOf')
const setVersion = statement(source, 'setVersion')

/** The version of a file; 0 when it has no tables of Belfry. Refuses a file where other tables have our names. */
export function schemaVersion(db: Connection, file: string): number {
  // The names are read first: if another process migrates between these reads, the later ones see all that it created.
  const name = existing({ db }, { names: JSON.stringify(['belfry_meta', ...NAMES]) })?.name
  if (name === null || name === undefined) return 0
  const hasMeta = metaColumns({ db }, {})?.columns === 'name,value'
  const version = hasMeta ? versionOf({ db }, {})?.value : undefined
  if (version !== undefined) return version
  throw failure(
    'STORE_INVALID',
    `${file} has a ${quote(name)} that Belfry did not make: give Belfry a file of its own, or rename that table`,
  )
}

/** Refuses a file of a newer Belfry: this one would not understand all of it. */
export function checkVersion(version: number, file: string): void {
  if (version <= SCHEMA_VERSION) return
  throw failure(
    'STORE_INVALID',
    `${file} was written by a newer Belfry (schema ${version}, this one knows ${SCHEMA_VERSION}): upgrade belfry here too`,
  )
}

/** Brings the file up to date, and returns the version that it had. Call it inside a write transaction. */
export function migrate(db: Connection, file: string): number {
  const version = schemaVersion(db, file)
  checkVersion(version, file)
  if (version === SCHEMA_VERSION) return version
  db.exec(migrationSql(version))
  return version
}

/** The statements that `migrate` would run, for people who want to read them. */
export function migrationSql(from: number): string {
  if (from === SCHEMA_VERSION) return ''
  const version = setVersion.sql.replace('?', String(SCHEMA_VERSION))
  return [`${makeMeta.sql};\n`, ...MIGRATIONS.slice(from), `${version};\n`].join('\n')
}
