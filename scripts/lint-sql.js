// @ts-check
/**
 * Checks every function of a freshly migrated Postgres schema with plpgsql_check: unknown columns, wrong types, unused
 * variables, unreachable code. A warning fails the check.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pg from 'pg'
import { rolldown } from 'rolldown'
import { foundOrInstalled } from '../test/servers/apt-install.js'
import { startOwnPostgres } from '../test/servers/postgres.js'
import { textModules } from './text-modules.js'

const root = fileURLToPath(new URL('../', import.meta.url))

/** The checker reports all warnings except those about performance. An error does not end the check. */
const OPTIONS = `security_warnings => true, performance_warnings => false, extra_warnings => true, fatal_errors => false`

const CHECK = `select p.proname as name, found.lineno as line, found.level, found.message, found.detail, found.query
  from pg_catalog.pg_proc p join pg_catalog.pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql'
  cross join lateral plpgsql_check_function_tb(p.oid, ${OPTIONS}) found
  where p.pronamespace = 'belfry'::regnamespace order by p.proname, found.lineno`

/**
 * The SQL as the store would run it. The bundle lies as deep below the root as migration-sql.ts, which reads package.json by
 * a relative path.
 */
async function migrationSql() {
  const file = join(root, 'node_modules/.cache/belfry/lint-sql/migration-sql.js')
  const bundle = await rolldown({
    input: join(root, 'src/stores/postgres/schema/migration-sql.ts'),
    platform: 'node',
    resolve: { extensionAlias: { '.js': ['.ts'] } },
    plugins: [textModules()],
  })
  await bundle.write({ file, format: 'esm' })
  await bundle.close()
  return /** @type {string} */ ((await import(pathToFileURL(file).href)).migrationSql('belfry'))
}

function findChecker() {
  const versions = existsSync('/usr/share/postgresql') ? readdirSync('/usr/share/postgresql') : []
  return versions
    .map((version) => `/usr/share/postgresql/${version}/extension/plpgsql_check.control`)
    .find((file) => existsSync(file))
}

foundOrInstalled({
  what: 'there is no plpgsql_check for Postgres: install postgresql-15-plpgsql-check',
  package_: 'postgresql-15-plpgsql-check',
  find: findChecker,
})
const sql = await migrationSql()
const server = await startOwnPostgres()
const client = new pg.Client({ connectionString: server.url })
try {
  await client.connect()
  await client.query('create extension plpgsql_check')
  await client.query(sql)
  const { rows } = await client.query(CHECK)
  for (const { name, line, level, message, detail, query } of rows) {
    const about = [detail, query].filter(Boolean).join(' ')
    console.error(`belfry.${name}, line ${line ?? 0}: ${level}: ${message} ${about}`)
  }
  if (rows.length > 0) process.exitCode = 1
  else console.log('plpgsql_check: every function, no warnings')
} finally {
  await client.end()
  await server.stop()
}
