// @ts-check
/**
 * A real Redis for tests and benches: the one that `BELFRY_TEST_REDIS` names, else a server of our own from the binary on
 * this machine, Redis or Valkey, which is installed if there is none. Its log of writes is on disk every second.
 */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createClient } from '@redis/client'
import { foundOrInstalled } from './apt.js'
import { startOwn, untilReady } from './own-server.js'

const WANTED = {
  what: 'there is no Redis for the tests: set BELFRY_TEST_REDIS to a URL, or install redis-server',
  package_: 'redis-server',
  find: () => binary('redis-server') ?? binary('valkey-server'),
}

const SETTINGS = ['--bind', '127.0.0.1', '--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '']

/** @returns {Promise<import('./own-server.js').RunningServer>} */
export async function startRedis() {
  const given = process.env.BELFRY_TEST_REDIS
  if (given !== undefined && given !== '') {
    await untilReady(given, 10_000, redisAnswers)
    return { url: given, stop: async () => {} }
  }
  return startOwnRedis()
}

/**
 * A server that nobody else uses.
 * @param {string[]} settings
 * @returns {Promise<import('./own-server.js').RunningServer>}
 */
export async function startOwnRedis(settings = []) {
  const program = foundOrInstalled(WANTED)
  return startOwn({
    name: 'redis',
    signal: 'TERM',
    url: (port) => `redis://127.0.0.1:${port}`,
    prepare: ({ folder, port }) => [program, '--port', String(port), '--dir', folder, ...SETTINGS, ...settings],
    answers: redisAnswers,
  })
}

/** @param {string} url */
async function redisAnswers(url) {
  const client = createClient({ url, socket: { reconnectStrategy: false, connectTimeout: 5_000 } })
  client.on('error', () => {})
  await client.connect()
  await client.ping()
  client.destroy()
}

/** @param {string} name */
function binary(name) {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}
