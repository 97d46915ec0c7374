// @ts-check
/**
 * The long form of the crontab test: three processes run one file for some minutes, with lines that fire every minute;
 * one process is killed with SIGKILL in the second of a tick. Each line must run once in every minute, over all
 * processes.
 *
 *     npm run test:crontab -- --minutes 2 [--store sqlite | postgres | redis]
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startOwnPostgres } from '../servers/postgres.js'
import { startOwnRedis } from '../servers/redis.js'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const LINES = ['a', 'b', 'c', 'd', 'e']
const LEASE_S = 5

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '2' }, store: { type: 'string', default: 'sqlite' } },
})
const folder = mkdtempSync(join(tmpdir(), 'belfry-minutes-'))
const file = join(folder, 'minutes.cron')
const written = join(folder, 'written')
const { url: store, stop: stopStore } = await openStore(values.store)
writeFileSync(file, LINES.map((name) => `* * * * * echo "${name} $BELFRY_TICK $BELFRY_RUN" >> ${written}\n`).join(''))

/**
 * @param {string} kind
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 */
async function openStore(kind) {
  if (kind === 'redis') return startOwnRedis()
  if (kind !== 'postgres') return { url: join(folder, 'belfry.db'), stop: async () => {} }
  const server = await startOwnPostgres()
  execFileSync(process.execPath, [MAIN, 'migrate', '--store', server.url])
  return server
}

function start() {
  const args = ['crontab', file, '--store', store, '--lease', `${LEASE_S}s`]
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text
  })
  const ready = async () => {
    while (!said.includes('lines of')) {
      if (child.exitCode !== null) throw new Error(said)
      await sleep(50)
    }
  }
  return { child, ready }
}

/** @returns {string[]} */
const lines = () => (existsSync(written) ? readFileSync(written, 'utf8').trim().split('\n') : [])

const hosts = [start(), start(), start()]
try {
  await Promise.all(hosts.map(({ ready }) => ready()))
  const firstTick = Math.ceil(Date.now() / 60_000) * 60_000
  const lastTick = firstTick + (Number(values.minutes) - 1) * 60_000
  // Kills the process in the second of the last tick but one, so that another tick follows if there is more than one.
  const killAt = Math.max(firstTick, lastTick - 60_000)
  await sleep(killAt + 200 - Date.now())
  hosts[0]?.child.kill('SIGKILL')
  await sleep(lastTick + LEASE_S * 1_500 + 5_000 - Date.now())
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const line of lines()) {
    const [name, tick] = line.split(' ')
    const key = `${name} ${tick}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  const wrong = []
  for (let tick = firstTick; tick <= lastTick; tick += 60_000) {
    for (const name of LINES) {
      const key = `${name} ${new Date(tick).toISOString()}`
      const count = counts.get(key) ?? 0
      // Another host repeats the runs of the killed one: at least once, and none lost.
      const isRight = tick === killAt ? count >= 1 : count === 1
      if (!isRight) wrong.push({ line: key, times: count })
    }
  }
  const repeated = [...counts.values()].filter((count) => count > 1).length
  console.log(
    JSON.stringify({
      store: values.store,
      minutes: Number(values.minutes),
      lines: LINES.length,
      ran: lines().length,
      repeated,
      wrong,
    }),
  )
  if (wrong.length > 0) process.exitCode = 1
} finally {
  await Promise.all(
    hosts.map(async ({ child }) => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      await new Promise((resolve) => child.once('exit', resolve))
    }),
  )
  await stopStore()
  rmSync(folder, { recursive: true, force: true })
}
