// @ts-check
/**
 * The benches' own durable Postgres server, started when the first bench needs it. Every turn has its own schema,
 * begins after a checkpoint, and drops its tables at the end.
 */
import pg from 'pg'
import { startPostgres } from '../../test/servers/postgres.js'

/** @typedef {import('pg').Pool} Pool */

/** As many connections as the store opens by default. */
export const CONNECTIONS = 10

/** @type {Promise<import('../../test/servers/postgres.js').RunningServer> | undefined} */
let running

export async function postgresUrl() {
  running ??= startPostgres()
  return (await running).url
}

export async function stopPostgres() {
  await (await running)?.stop()
  running = undefined
}

let schemas = 0

/** Returns an unused schema name after a checkpoint, so that this turn does not pay for writes of earlier ones. */
export async function freshSchema() {
  await checkpoint()
  schemas += 1
  return `bench_${process.pid}_${schemas}`
}

export async function checkpoint() {
  await withClient((client) => client.query('checkpoint'))
}

/** @param {string} schema */
export async function dropSchema(schema) {
  await withClient((client) => client.query(`drop schema if exists ${schema} cascade`))
}

/**
 * @template Result
 * @param {(client: import('pg').Client) => Promise<Result>} work
 */
export async function withClient(work) {
  const client = new pg.Client({ connectionString: await postgresUrl() })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** @param {number} [max] */
export async function openPool(max = CONNECTIONS) {
  return new pg.Pool({ connectionString: await postgresUrl(), max })
}

const SHOWN = `select name, current_setting(name) as value from pg_settings where source not in ('default', 'client')
  and name !~ '^(port|data_directory|config_file|hba_file|ident_file|lc_|log_|TimeZone|listen|unix|dynamic|DateStyle)'
  or name in ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_wal_size')
  order by name`

/** The server's durability settings, and all settings that differ from the defaults. */
export async function serverSettings() {
  const { rows } = await withClient((client) => client.query(SHOWN))
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
}
