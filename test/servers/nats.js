// @ts-check
/**
 * A real NATS server with JetStream for tests and benches. `BELFRY_TEST_NATS` names a running one. Without it, this
 * module starts one, and installs it if there is none. Acknowledged messages survive a crash.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { foundOrInstalled } from './apt-install.js'
import { findProgram } from './find-program.js'
import { startServer, untilReady } from './start-server.js'

const WANTED = {
  what: 'there is no NATS server for the tests: set BELFRY_TEST_NATS to a URL, or install nats-server',
  package_: 'nats-server',
  find: () => findProgram('nats-server'),
}

/** @returns {Promise<import('./start-server.js').RunningServer | import('./start-server.js').OwnServer>} */
export async function startNats() {
  const given = process.env.BELFRY_TEST_NATS
  if (given === undefined || given === '') return startOwnNats()
  await untilReady(given, 10_000, natsAnswers)
  return { url: given, stop: async () => {} }
}

/**
 * A server for one test.
 * @param {{ jetstream?: boolean, maxPayload?: number, password?: string }} [settings] `password` is that of the user `belfry`
 * @returns {Promise<import('./start-server.js').OwnServer>}
 */
export async function startOwnNats({ jetstream = true, maxPayload = 1_048_576, password } = {}) {
  const server = foundOrInstalled(WANTED)
  return startServer({
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
 * Waits for the greeting, because a NATS server sends the first message.
 * @param {string} url
 */
async function natsAnswers(url) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port || 4222), hostname)
  try {
    const [greeting] = await once(socket, 'data', { signal: AbortSignal.timeout(5_000) })
    if (!String(greeting).startsWith('INFO ')) throw new Error(`this is no NATS server: ${url}`)
  } finally {
    socket.destroy()
  }
}
