// @ts-check
/**
 * A real Postgres for tests and benches. `BELFRY_TEST_POSTGRES` names a running one. Without it, this module starts one
 * from the binaries in the folder `BELFRY_TEST_POSTGRES_BINARIES`, else from the newest on this machine, and installs them
 * if there are none. It is as durable as in production.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
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
 * A streaming standby of a running server. It is promoted by `select pg_promote()`.
 * @param {string} primary the URL of the primary
 * @param {string} name as the primary knows it (`application_name`)
 * @param {Readonly<Record<string, string>>} [settings]
 * @returns {Promise<import('./start-server.js').OwnServer>}
 */
export async function startStandby(primary, name, settings = {}) {
  const binaries = postgresBinaries()
  return startServer({
    name: `postgres-${name}`,
    signal: 'INT',
    url: (port) => `postgres://belfry@127.0.0.1:${port}/postgres`,
    prepare: ({ folder, port, as }) => {
      const data = join(folder, 'data')
      const copy = [
        '-D',
        data,
        '-d',
        `${primary}?application_name=${name}`,
        '-R',
        '-X',
        'stream',
        '-c',
        'fast',
        '--no-sync',
      ]
      execFileSync(join(binaries, 'pg_basebackup'), copy, { ...as, stdio: 'pipe' })
      return [join(binaries, 'postgres'), '-D', data, ...flags({ ...SETTINGS, ...settings, port: String(port) })]
    },
  })
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
