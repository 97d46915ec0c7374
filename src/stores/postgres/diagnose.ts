/** Findings of `belfry doctor` about the database itself. Reads catalogues and statistics, never the tables. */
import type { Check, Finding } from '../../core/diagnosis.js'
import type { Database } from './connection/database.js'
import { IDENTITY, timelineOf } from './connection/server-identity.js'
import { planMigration } from './schema/migrate.js'
import { INDEXES } from './schema/migration-sql.js'
import { inSchema } from './schema/schema-name.js'

export async function diagnose(db: Database): Promise<readonly Check[]> {
  return [await version(db), await indexes(db), await bloat(db)]
}

async function version(db: Database): Promise<Check> {
  const [[server] = []] = await db.read(`select pg_catalog.current_setting('server_version')`)
  const { from, to, sql } = await planMigration(db, db.schema)
  const about = `Postgres ${server?.split(' ')[0]}${await identity(db)}, schema ${db.schema} of version ${from}`
  const what =
    from === to ? 'the functions in the database are of an older release' : `the schema is of version ${from}`
  return { name: 'store', about, findings: sql === '' ? [] : [{ what, fix: 'belfry migrate --store postgres://…' }] }
}

/**
 * The timeline and system identifier, by which an instance recognises an old primary. Empty where the role may not read
 * them, as on some managed servers.
 */
async function identity(db: Database): Promise<string> {
  const [row] = await db.read(IDENTITY).catch(() => [])
  return row === undefined ? '' : `, timeline ${timelineOf(row)}, system ${row[0]}`
}

const INDEX_STATES = `select c.relname, i.indisvalid and i.indisready, pg_catalog.pg_relation_size(c.oid), c.reltuples::bigint
  from pg_catalog.pg_index i
  join pg_catalog.pg_class c on c.oid = i.indexrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1`

/**
 * A normal index entry has 40 to 100 bytes. An index with far more bytes per entry is mostly empty pages, and a large
 * one is worth a reindex.
 */
const BLOATED_ENTRY_BYTES = 500
const LARGE_BYTES = 100 * 2 ** 20

async function indexes(db: Database): Promise<Check> {
  const found = new Map(
    (await db.read(INDEX_STATES, [db.schema], { patience: 'patient' })).map(([name, ...rest]) => [name ?? '', rest]),
  )
  const findings: Finding[] = []
  for (const [name, sql] of INDEXES) {
    const [isValid, bytes, tuples] = found.get(name) ?? []
    const reindex = `reindex index concurrently "${db.schema}".${name};`
    const size = Number(bytes)
    if (isValid === undefined) {
      const create = inSchema(sql, db.schema).replace(' index ', ' index concurrently ')
      findings.push({ what: `the index ${name} is missing: looking there gets slow`, fix: `${create};` })
    } else if (isValid !== 't') {
      findings.push({ what: `the index ${name} is invalid: Postgres does not use it`, fix: reindex })
    } else if (size > LARGE_BYTES && size / Math.max(Number(tuples), 1) > BLOATED_ENTRY_BYTES) {
      findings.push({ what: `the index ${name} has ${megabytes(size)} for ${tuples} entries`, fix: reindex })
    }
  }
  const bad = new Set(findings.map(({ what }) => what)).size
  return { name: 'indexes', about: `${INDEXES.size - bad} of ${INDEXES.size} are well`, findings }
}

const DEAD_ROWS = `select relname, n_dead_tup, n_live_tup from pg_catalog.pg_stat_user_tables
  where schemaname = $1 order by n_dead_tup desc`
const MANY_DEAD = 100_000

async function bloat(db: Database): Promise<Check> {
  const tables = (await db.read(DEAD_ROWS, [db.schema], { patience: 'patient' })).map(([name, dead, live]) => ({
    name: name ?? '',
    dead: Number(dead),
    live: Number(live),
  }))
  const findings: Finding[] = tables
    .filter(({ dead, live }) => dead > MANY_DEAD && dead > live)
    .map(({ name, dead, live }) => ({
      what: `the table ${name} has ${dead} dead rows beside ${live} live ones`,
      fix: `vacuum (analyze) "${db.schema}".${name}; and look for transactions that stay open for long`,
    }))
  const [[autovacuum] = []] = await db.read(`select pg_catalog.current_setting('autovacuum')`)
  if (autovacuum === 'off') {
    findings.push({
      what: 'autovacuum is off: dead rows are never cleared away',
      fix: 'alter system set autovacuum = on;',
    })
  }
  const dead = tables.reduce((sum, table) => sum + table.dead, 0)
  return { name: 'bloat', about: `${dead} dead rows in all tables`, findings }
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MB`
}
