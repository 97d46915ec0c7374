// @ts-check
/**
 * A real Postgres for tests and benches. `BELFRY_TEST_POSTGRES` names a running one. Without it, this module starts one
 * from the binaries in the folder `BELFRY_TEST_POSTGRES_BINARIES`, else from the newest on this machine, and installs them
 * if there are none. It is as durable as in production.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { foundOrInstalled } from './apt-install.js'
import { startServer, untilReady } from './start-server.js'

const ROOT = '/usr/lib/postgresql'

const WANTED = {
  what: `there is no Postgres for the tests: set BELFRY_TEST_POSTGRES to a URL, or install postgresql (looked in ${ROOT})`,
  package_: 'postgresql',
  find: () => process.env.BELFRY_TEST_POSTGRES_BINARIES ?? newestBinaries(ROOT),
}

/** The folder of `initdb` and its like. */
export function postgresBinaries() {
  return foundOrInstalled(WANTED)
}

const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  log_min_messages: 'fatal',
}

/** @returns {Promise<import('./start-server.js').RunningServer>} */
export async function startPostgres() {
  const given = process.env.BELFRY_TEST_POSTGRES
  if (given !== undefined && given !== '') {
    await untilReady(given, 10_000)
    return { url: given, stop: async () => {} }
  }
  return startOwnPostgres()
}

/**
 * A server for one test, whatever the environment names: the test may crash it.
 * @param {Readonly<Record<string, string>>} [settings]
 * @returns {Promise<import('./start-server.js').OwnServer>}
 */
export async function startOwnPostgres(settings = {}) {
  const binaries = postgresBinaries()
  return startServer({
    name: 'postgres',
    signal: 'INT',
    url: (port) => `postgres://belfry@127.0.0.1:${port}/postgres`,
    prepare: ({ folder, port, as }) => {
      const data = join(folder, 'data')
      const init = ['-D', data, '-U', 'belfry', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
      execFileSync(join(binaries, 'initdb'), init, { ...as, stdio: 'pipe' })
      return [join(binaries, 'postgres'), '-D', data, ...flags({ ...SETTINGS, ...settings, port: String(port) })]
    },
  })
}

/**
 * A streaming standby of a running server of this machine. It is promoted by `select pg_promote()`.
 * @param {string} primary the URL of the primary
 * @param {string} name as the primary knows it (`application_name`)
 * @param {Readonly<Record<string, string>>} [settings]
 * @returns {Promise<import('./start-server.js').OwnServer>}
 */
export async function startStandby(primary, name, settings = {}) {
  const { hostname, port: primaryPort, username } = new URL(primary)
  const source = `host=${hostname} port=${primaryPort} user=${username} application_name=${name}`
  const { copy, label } = await copiedCluster(primary)
  return startServer({
    name: `postgres-${name}`,
    signal: 'INT',
    url: (port) => `postgres://belfry@127.0.0.1:${port}/postgres`,
    prepare: ({ folder, port, as }) => {
      const data = join(folder, 'data')
      execFileSync('mv', [copy, data])
      for (const [name, input] of Object.entries({ backup_label: label, 'standby.signal': '' })) {
        execFileSync('tee', [join(data, name)], { ...as, input, stdio: ['pipe', 'ignore', 'inherit'] })
      }
      const all = { ...SETTINGS, ...settings, port: String(port), primary_conninfo: source }
      return [join(postgresBinaries(), 'postgres'), '-D', data, ...flags(all)]
    },
  })
}

/**
 * A copy of a running cluster's folder, from which a standby can start. `pg_basebackup` is not among the binaries of all
 * versions, so this asks the server for a backup as that does.
 * @param {string} primary
 */
async function copiedCluster(primary) {
  const copy = join(mkdtempSync(join(tmpdir(), 'belfry-standby-')), 'data')
  const client = new pg.Client({ connectionString: primary })
  await client.connect()
  try {
    const { rows } = await client.query(
      `select current_setting('data_directory') as source, current_setting('server_version_num')::integer >= 150000 as is_new`,
    )
    const [{ source, is_new: isNew }] = rows
    await client.query(isNew ? `select pg_backup_start('copy', true)` : `select pg_start_backup('copy', true, false)`)
    // Files may go away while they are copied, which the log makes up for.
    spawnSync('cp', ['-a', source, copy], { stdio: 'ignore' })
    const stopped = await client.query(
      isNew ? 'select labelfile from pg_backup_stop(false)' : 'select labelfile from pg_stop_backup(false, false)',
    )
    rmSync(join(copy, 'postmaster.pid'), { force: true })
    return { copy, label: /** @type {string} */ (stopped.rows[0].labelfile) }
  } finally {
    await client.end()
  }
}

/** @param {Readonly<Record<string, string>>} settings */
function flags(settings) {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/**
 * The folder of the newest version.
 * @param {string} root
 */
function newestBinaries(root) {
  const versions = existsSync(root) ? readdirSync(root) : []
  return versions
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => join(root, version, 'bin'))
    .find((folder) => existsSync(join(folder, 'initdb')))
}
