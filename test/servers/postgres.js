// @ts-check
/**
 * A real Postgres for tests and benches. `BELFRY_TEST_POSTGRES` names a running one. Without it, this module starts one
 * from the newest binaries on this machine, and installs them if there are none. It is as durable as in production.
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
  find: () => newestBinaries(ROOT),
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
 * @returns {Promise<import('./start-server.js').OwnServer>}
 */
export async function startOwnPostgres() {
  const binaries = foundOrInstalled(WANTED)
  return startServer({
    name: 'postgres',
    signal: 'INT',
    url: (port) => `postgres://belfry@127.0.0.1:${port}/postgres`,
    prepare: ({ folder, port, as }) => {
      const data = join(folder, 'data')
      const init = ['-D', data, '-U', 'belfry', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
      execFileSync(join(binaries, 'initdb'), init, { ...as, stdio: 'pipe' })
      const settings = Object.entries({ ...SETTINGS, port }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
      return [join(binaries, 'postgres'), '-D', data, ...settings]
    },
  })
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
