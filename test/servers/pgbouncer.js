// @ts-check
/**
 * A real PgBouncer in transaction mode in front of the tests' Postgres. `BELFRY_TEST_PGBOUNCER` names a running one.
 * Without it, this module starts one, and installs it if there is none. It has few connections to the server, so that
 * clients share them.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { foundOrInstalled } from './apt-install.js'
import { findProgram } from './find-program.js'
import { startServer, untilReady } from './start-server.js'

const WANTED = {
  what: 'there is no PgBouncer for the tests: set BELFRY_TEST_PGBOUNCER to a URL, or install pgbouncer (looked in PATH and /usr/sbin)',
  package_: 'pgbouncer',
  find: () => findProgram('pgbouncer'),
}

/**
 * @param {string} postgresUrl the server behind the pooler
 * @returns {Promise<import('./start-server.js').RunningServer>}
 */
export async function startPgBouncer(postgresUrl) {
  const given = process.env.BELFRY_TEST_PGBOUNCER
  if (given !== undefined && given !== '') {
    await untilReady(given, 10_000)
    await checkSame(given, postgresUrl)
    return { url: given, stop: async () => {} }
  }
  const binary = foundOrInstalled(WANTED)
  const { user, password, host, port, database } = new pg.Client({ connectionString: postgresUrl })
  const name = encodeURIComponent(database ?? '')
  return startServer({
    name: 'pgbouncer',
    signal: 'TERM',
    url: (own) => `postgres://belfry@127.0.0.1:${own}/${name}`,
    prepare: ({ folder, port: own }) => {
      const file = join(folder, 'pgbouncer.ini')
      writeFileSync(file, settings({ user, password, host, port }, own), { mode: 0o644 })
      return [binary, file]
    },
  })
}

/**
 * @param {{ user?: string, password?: string | null, host: string, port: number }} server
 * @param {number} port
 */
function settings({ user, password, host, port: serverPort }, port) {
  const server = Object.entries({ host, port: serverPort, user, password })
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => `${key}='${String(value).replaceAll("'", "''")}'`)
  return `[databases]
* = ${server.join(' ')}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 2000
server_tls_sslmode = prefer
log_connections = 0
log_disconnections = 0
`
}

/**
 * LISTEN bypasses the pooler, so both URLs must lead to the same database.
 * @param {string} pooled
 * @param {string} direct
 */
async function checkSame(pooled, direct) {
  const [one, other] = await Promise.all([pooled, direct].map(identity))
  if (one === other) return
  throw new Error(
    'BELFRY_TEST_PGBOUNCER leads to another database than BELFRY_TEST_POSTGRES, or the latter is not set: set both',
  )
}

/** @param {string} connectionString */
async function identity(connectionString) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    const { rows } = await client.query('select system_identifier, current_database() from pg_control_system()')
    return JSON.stringify(rows)
  } finally {
    await client.end()
  }
}
