// @ts-check
/**
 * A real NATS server with JetStream for tests and benches: the one that `BELFRY_TEST_NATS` names, else one of our own,
 * installed if there is none. What it acknowledged is in its files, and there after a crash.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { foundOrInstalled } from './apt.js'
import { startOwn, untilReady } from './own-server.js'
import { program } from './program.js'

const WANTED = {
  what: 'there is no NATS server for the tests: set BELFRY_TEST_NATS to a URL, or install nats-server',
  package_: 'nats-server',
  find: () => program('nats-server'),
}

/** @returns {Promise<import('./own-server.js').RunningServer | import('./own-server.js').OwnServer>} */
export async function startNats() {
  const given = process.env.BELFRY_TEST_NATS
  if (given === undefined || given === '') return startOwnNats()
  await untilReady(given, 10_000, natsAnswers)
  return { url: given, stop: async () => {} }
}

/**
 * A server that nobody else uses.
 * @param {{ jetstream?: boolean, maxPayload?: number, password?: string }} [settings] the password is of the user `belfry`
 * @returns {Promise<import('./own-server.js').OwnServer>}
 */
export async function startOwnNats({ jetstream = true, maxPayload = 1_048_576, password } = {}) {
  const server = foundOrInstalled(WANTED)
  return startOwn({
    name: 'nats',
    signal: 'KILL',
    crash_: 'KILL',
    url: (port) => `nats://127.0.0.1:${port}`,
    prepare: ({ folder, port }) => {
      const file = join(folder, 'nats.conf')
      const stored = jetstream ? `jetstream { store_dir: "${join(folder, 'data')}" }\n` : ''
      const secret = password === undefined ? '' : `authorization { user: belfry, password: "${password}" }\n`
      const text = `listen: "127.0.0.1:${port}"\nmax_payload: ${maxPayload}\n${stored}${secret}`
      writeFileSync(file, text, { mode: 0o644 })
      return [server, '-c', file]
    },
    ready: natsAnswers,
  })
}

/**
 * The server speaks first.
 * @param {string} url
 */
async function natsAnswers(url) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port || 4222), hostname)
  try {
    const [said] = await once(socket, 'data', { signal: AbortSignal.timeout(5_000) })
    if (!String(said).startsWith('INFO ')) throw new Error(`this is no NATS server: ${url}`)
  } finally {
    socket.destroy()
  }
}
