// @ts-check
/**
 * Starts a server for the tests: on a free loopback port, with its data in a temporary folder, not as root. The server
 * ends with the process that started it, even if that is killed.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/**
 * @typedef {object} RunningServer
 * @property {string} url
 * @property {() => Promise<void>} stop
 *
 * @typedef {object} OwnServer
 * @property {string} url
 * @property {() => Promise<void>} stop
 * @property {() => Promise<void>} crash like `pg_ctl stop -m immediate` of Postgres
 * @property {() => Promise<void>} restart
 *
 * @typedef {object} Place the folder, port and user of a server
 * @property {string} folder
 * @property {number} port
 * @property {{ cwd: string, uid?: number, gid?: number }} as
 *
 * @typedef {object} Recipe
 * @property {string} name
 * @property {(place: Place) => string[]} prepare writes the server's files, and returns its command line
 * @property {'INT' | 'TERM' | 'KILL'} signal stops it quickly and in order
 * @property {'QUIT' | 'KILL' | 'TERM'} [crash_] crashes it; QUIT by default
 * @property {(port: number) => string} url
 * @property {number} [port] a free one by default
 * @property {(url: string) => Promise<void>} [ready] resolves when the server answers; by default as Postgres does
 */

/**
 * The parent of the server. It crashes and starts the server on command. Its input closes when the process that started
 * it ends: then it stops the server and removes all files.
 */
const PARENT = `
start() { "$@" 1>&2 & server=$!; }
# A killed server with a wrong clock leaves the memory of libfaketime behind.
clear() { rm -f /dev/shm/faketime_shm_$server /dev/shm/sem.faketime_sem_$server; }
start "$@"
while read -r word; do
  case $word in
    crash) kill -"$BELFRY_TEST_CRASH" $server; wait $server; clear ;;
    start) start "$@" ;;
  esac
done
kill -"$BELFRY_TEST_SIGNAL" $server 2>/dev/null; wait $server; clear
rm -rf "$BELFRY_TEST_DATA"
`

/**
 * @param {Recipe} recipe
 * @returns {Promise<OwnServer>}
 */
export async function startServer({ name, prepare, signal, crash_ = 'QUIT', url, port: given, ready = databaseReady }) {
  const user = owner()
  const folder = mkdtempSync(join(tmpdir(), `belfry-${name}-`))
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const port = given ?? (await freePort())
  const as = { cwd: folder, ...(user ?? {}) }
  let command
  try {
    command = prepare({ folder, port, as })
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  const env = { ...process.env, BELFRY_TEST_DATA: folder, BELFRY_TEST_SIGNAL: signal, BELFRY_TEST_CRASH: crash_ }
  // The parent has its own process group, because a signal to the test run must not end it before it has cleaned
  // up.
  const options = { ...as, env, detached: true }
  const parent = spawn('sh', ['-c', PARENT, 'sh', ...command], { ...options, stdio: ['pipe', 'ignore', 'pipe'] })
  let log = ''
  parent.stderr.on('data', (chunk) => {
    log = (log + String(chunk)).slice(-4_000)
  })
  const ended = once(parent, 'exit')
  const stop = async () => {
    parent.stdin.end()
    await ended
  }
  try {
    await untilReady(url(port), 30_000, ready)
  } catch (error) {
    await stop()
    throw new Error(`the ${name} for the tests did not start: ${log}`, { cause: error })
  }
  const crash = async () => {
    parent.stdin.write('crash\n')
    while (await answers(port)) await sleep(10)
  }
  const restart = async () => {
    parent.stdin.write('start\n')
    await untilReady(url(port), 30_000, ready)
  }
  return { url: url(port), stop, crash, restart }
}

/** @param {number} port */
async function answers(port) {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/**
 * The user that the servers run as: they refuse root.
 * @returns {{ uid: number, gid: number } | undefined}
 */
function owner() {
  if (process.getuid?.() !== 0) return undefined
  for (const user of ['postgres', 'nobody']) {
    try {
      const number = (/** @type {string} */ flag) => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }))
      return { uid: number('-u'), gid: number('-g') }
    } catch {
      // No such user: try the next one.
    }
  }
  throw new Error('the servers for the tests refuse to run as root, and there is no user postgres or nobody')
}

/**
 * Any free port, or the wanted one; rejects when that is in use.
 * @param {number} [wanted]
 */
export async function freePort(wanted = 0) {
  const server = createServer().listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('there is no free port')
  return address.port
}

/**
 * Waits until a server answers.
 * @param {string} url
 * @param {number} patienceMs
 * @param {(url: string) => Promise<void>} [ready]
 */
export async function untilReady(url, patienceMs, ready = databaseReady) {
  const until = performance.now() + patienceMs
  for (;;) {
    try {
      await ready(url)
      return
    } catch (error) {
      if (performance.now() > until) throw new Error(`nothing answers at ${url}`, { cause: error })
    }
    await sleep(50)
  }
}

/**
 * Resolves when the database answers a query, directly or through a pooler.
 * @param {string} url
 */
async function databaseReady(url) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
  } finally {
    await client.end().catch(() => {})
  }
}
