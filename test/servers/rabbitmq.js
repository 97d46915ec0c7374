// @ts-check
/**
 * A real RabbitMQ for tests and benches. `BELFRY_TEST_RABBITMQ` names a running one. Without it, this module starts one,
 * and installs it if there is none. It has its own name, home, database and epmd (Erlang's register of nodes), so that
 * it cannot meet another Erlang node of this machine. The server and its epmd listen only on loopback.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'amqplib'
import { foundOrInstalled } from './apt-install.js'
import { findProgram } from './find-program.js'
import { freePort, startServer, untilReady } from './start-server.js'

/** The server's own script. The wrapper of the same name in the PATH switches users, and accepts only two users. */
const SERVER = '/usr/lib/rabbitmq/bin/rabbitmq-server'

const WANTED = {
  what: `there is no RabbitMQ for the tests: set BELFRY_TEST_RABBITMQ to a URL, or install rabbitmq-server (looked for ${SERVER})`,
  package_: 'rabbitmq-server',
  find: () => (existsSync(SERVER) ? SERVER : undefined),
}

/** Small enough for a test to exceed. */
export const MAX_MESSAGE_BYTES = 200_000

/** Ends epmd together with the server, because a killed server would leave it running. */
const WITH_REGISTER = `
epmd=$1; shift
"$epmd" -address 127.0.0.1 & register=$!
trap 'kill -KILL $server $register 2>/dev/null; wait; exit 0' TERM
"$@" </dev/null & server=$!
wait $server; kill -KILL $register; wait
`

/** @returns {Promise<import('./start-server.js').RunningServer | import('./start-server.js').OwnServer>} */
export async function startRabbitMq() {
  const given = process.env.BELFRY_TEST_RABBITMQ
  if (given === undefined || given === '') return startOwnRabbitMq()
  await untilReady(given, 10_000, rabbitAnswers)
  return { url: given, stop: async () => {} }
}

/**
 * A server for one test.
 * @returns {Promise<import('./start-server.js').OwnServer>}
 */
export async function startOwnRabbitMq() {
  const server = foundOrInstalled(WANTED)
  const epmd = findProgram('epmd')
  if (epmd === undefined) throw new Error('RabbitMQ is installed without the epmd of Erlang: install erlang-base')
  const [nodes, register] = [await freePort(), await freePort()]
  return startServer({
    name: 'rabbitmq',
    signal: 'TERM',
    crash_: 'TERM',
    url: (port) => `amqp://guest:guest@127.0.0.1:${port}`,
    prepare: ({ folder, port }) => {
      writeFileSync(join(folder, 'rabbitmq.conf'), `max_message_size = ${MAX_MESSAGE_BYTES}\n`, { mode: 0o644 })
      writeFileSync(join(folder, 'plugins'), '[].\n', { mode: 0o644 })
      const env = Object.entries(environment(folder, { port, nodes, register })).map(
        ([name, text]) => `${name}=${text}`,
      )
      return ['env', ...env, 'sh', '-c', WITH_REGISTER, 'sh', epmd, server]
    },
    ready: rabbitAnswers,
  })
}

/**
 * @param {string} folder
 * @param {{ port: number, nodes: number, register: number }} ports
 * @returns {Record<string, string>}
 */
function environment(folder, { port, nodes, register }) {
  return {
    HOME: folder,
    ERL_EPMD_PORT: String(register),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `belfry${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(nodes),
    RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'none'),
    RABBITMQ_CONF_ENV_FILE: join(folder, 'none'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_FEATURE_FLAGS_FILE: join(folder, 'flags'),
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    // Busy-waiting schedulers would take the cores from the tests.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
      '+sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}',
    // Makes the script exec the server, so that a signal reaches the server itself.
    RUNNING_UNDER_SYSTEMD: 'true',
  }
}

/** @param {string} url */
async function rabbitAnswers(url) {
  const connection = await connect(url, { timeout: 5_000 })
  await connection.close()
}
