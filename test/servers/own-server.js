// @ts-check
/**
 * A server of our own for the tests: on a free loopback port, its data in a temp folder, not as root. It ends with the
 * process that started it, however that ends.
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
 * @property {() => Promise<void>} crash of a Postgres: as `pg_ctl stop -m immediate` does it
 * @property {() => Promise<void>} restart
 *
 * @typedef {object} Place where a server may put its files, and as whom it runs
 * @property {string} folder
 * @property {number} port
 * @property {{ cwd: string, uid?: number, gid?: number }} as
 *
 * @typedef {object} Recipe
 * @property {string} name
 * @property {(place: Place) => string[]} prepare writes what the server needs, and answers with its command line
 * @property {'INT' | 'TERM' | 'KILL'} signal what ends it at once and in order
 * @property {'QUIT' | 'KILL' | 'TERM'} [crash_] what makes it crash; QUIT by default
 * @property {(port: number) => string} url
 * @property {number} [port] where it listens; wherever there is room, by default
 * @property {(url: string) => Promise<void>} [ready] resolves when it answers; a database's, by default
 */

/**
 * Lets the server crash and start again when it is told to. Its input ends when whoever started it is gone; then it
 * clears everything away.
 */
const KEEPER = `
start() { "$@" 1>&2 & server=$!; }
# Whoever had a wrong clock leaves its memory behind when it is killed.
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
export async function startOwn({ name, prepare, signal, crash_ = 'QUIT', url, port: given, ready = databaseReady }) {
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
  try {
    await untilReady(url(port), 30_000, ready)
  } catch (error) {
    await stop()
    throw new Error(`the ${name} for the tests did not start: ${said}`, { cause: error })
  }
  const crash = async () => {
    keeper.stdin.write('crash\n')
    while (await answers(port)) await sleep(10)
  }
  const restart = async () => {
    keeper.stdin.write('start\n')
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
 * These servers refuse to run as root.
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
  throw new Error('the servers for the tests refuse to run as root, and there is no user postgres or nobody')
}

/**
 * A port that is free, or this one, if it is.
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
 * Which a database also does through a pooler.
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
