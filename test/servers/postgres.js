// @ts-check
/**
 * A real Postgres for tests and benches: the one that `BELFRY_TEST_POSTGRES` names, else a server of our own from the binaries on
 * this machine, which are installed if there are none. Durable as in production, on a free loopback port, its data in a
 * temp folder; it ends with the process that started it, however that ends.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/**
 * @typedef {object} RunningServer
 * @property {string} url
 * @property {() => Promise<void>} stop
 */

/** @returns {Promise<RunningServer>} */
export async function startPostgres() {
  const given = process.env.BELFRY_TEST_POSTGRES
  if (given !== undefined && given !== '') {
    await untilReady(given, () => undefined, 10_000)
    return { url: given, stop: async () => {} }
  }
  return startOwn(findBinaries() ?? installBinaries())
}

const ROOT = '/usr/lib/postgresql'

/**
 * The newest version's folder.
 * @returns {string | undefined}
 */
function findBinaries() {
  const versions = existsSync(ROOT) ? readdirSync(ROOT) : []
  return versions
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => join(ROOT, version, 'bin'))
    .find((folder) => existsSync(join(folder, 'initdb')))
}

function installBinaries() {
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const apt = (/** @type {string[]} */ ...args) => {
    const [command = '', ...rest] = [...sudo, 'apt-get', ...args]
    execFileSync(command, rest, { env, stdio: 'pipe' })
  }
  try {
    apt('update', '-q')
    apt('install', '-q', '-y', '--no-install-recommends', 'postgresql')
  } catch (error) {
    throw new Error(`${MISSING}; installing it failed: ${String(error)}`, { cause: error })
  }
  const folder = findBinaries()
  if (folder === undefined) throw new Error(`${MISSING}, not even after installing it`)
  return folder
}

const MISSING = `there is no Postgres for the tests: set BELFRY_TEST_POSTGRES to a URL, or install postgresql (looked in ${ROOT})`

/**
 * The server refuses to run as root.
 * @returns {{ uid: number, gid: number } | undefined}
 */
function owner() {
  if (process.getuid?.() !== 0) return undefined
  for (const user of ['postgres', 'nobody']) {
    try {
      const number = (/** @type {string} */ flag) => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }))
      return { uid: number('-u'), gid: number('-g') }
    } catch {
      // The next one, then.
    }
  }
  throw new Error('the Postgres for the tests refuses to run as root, and there is no user postgres or nobody')
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

/** Waits for its input to end, which it does when whoever started it is gone, and then clears everything away. */
const KEEPER = `
"$@" 1>&2 & server=$!
cat > /dev/null
kill -INT $server 2>/dev/null; wait $server
rm -rf "$BELFRY_TEST_DATA"
`

/**
 * @param {string} binaries
 * @returns {Promise<RunningServer>}
 */
async function startOwn(binaries) {
  const user = owner()
  const folder = mkdtempSync(join(tmpdir(), 'belfry-postgres-'))
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const as = { cwd: folder, ...(user ?? {}) }
  try {
    const init = ['-D', data, '-U', 'belfry', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
    execFileSync(join(binaries, 'initdb'), init, { ...as, stdio: 'pipe' })
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  const port = await freePort()
  const settings = Object.entries({ ...SETTINGS, port: String(port) }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  const command = [join(binaries, 'postgres'), '-D', data, ...settings]
  const env = { ...process.env, BELFRY_TEST_DATA: folder }
  // In a group of its own: what ends all of a test run at once must leave somebody to clear away.
  const options = { ...as, env, detached: true }
  const keeper = spawn('sh', ['-c', KEEPER, 'sh', ...command], { ...options, stdio: ['pipe', 'ignore', 'pipe'] })
  let said = ''
  keeper.stderr.on('data', (chunk) => {
    said = (said + String(chunk)).slice(-4_000)
  })
  const ended = once(keeper, 'exit')
  const stop = async () => {
    keeper.stdin.end()
    await ended
  }
  const url = `postgres://belfry@127.0.0.1:${port}/postgres`
  try {
    await untilReady(url, () => (keeper.exitCode === null ? undefined : said), 30_000)
  } catch (error) {
    await stop()
    throw new Error(`the Postgres for the tests did not start: ${said}`, { cause: error })
  }
  return { url, stop }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('there is no free port')
  return address.port
}

/**
 * @param {string} url
 * @param {() => string | undefined} failed
 * @param {number} patienceMs
 */
async function untilReady(url, failed, patienceMs) {
  const until = performance.now() + patienceMs
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      return
    } catch (error) {
      const problem = failed()
      if (problem !== undefined || performance.now() > until) {
        throw new Error(`no Postgres answers at ${url}${problem === undefined ? '' : `: ${problem}`}`, { cause: error })
      }
    } finally {
      await client.end().catch(() => {})
    }
    await sleep(50)
  }
}
