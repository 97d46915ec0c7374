// @ts-check
/**
 * A broker that speaks Kafka's protocol, for tests and benches. `BELFRY_TEST_KAFKA` names running brokers. Without it,
 * this module starts the mock broker inside kcat (librdkafka's own tests use it), and installs kcat if there is none.
 * The mock keeps everything in memory and picks its port: after a crash it is empty, and has another address.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { foundOrInstalled } from './apt-install.js'
import { findProgram } from './find-program.js'
import { startServer, untilReady } from './start-server.js'

const WANTED = {
  what: 'there is no Kafka broker for the tests: set BELFRY_TEST_KAFKA to brokers (host:port,…), or install kcat',
  package_: 'kcat',
  find: () => findProgram('kcat'),
}

/** Runs kcat as a consumer of an empty topic. The mock broker runs inside kcat, which logs its address once. */
const BROKER = `exec "$1" -X test.mock.num.brokers=1 -b mock -C -t belfry-none -q >/dev/null 2>"$2"`

/** @returns {Promise<import('./start-server.js').RunningServer | import('./start-server.js').OwnServer>} */
export async function startKafka() {
  const given = process.env.BELFRY_TEST_KAFKA
  if (given === undefined || given === '') return startOwnKafka()
  await untilReady(given, 10_000, brokerAnswers)
  return { url: given, stop: async () => {} }
}

/**
 * A broker for one test. Its URL, `host:port`, changes with each restart.
 * @returns {Promise<import('./start-server.js').OwnServer>}
 */
export async function startOwnKafka() {
  const kcat = foundOrInstalled(WANTED)
  let log = ''
  const address = () => /replaced with (\S+)/.exec(readFileSync(log, 'utf8'))?.[1] ?? ''
  const own = await startServer({
    name: 'kafka',
    signal: 'KILL',
    crash_: 'KILL',
    url: () => '',
    prepare: ({ folder }) => {
      log = join(folder, 'log')
      return ['sh', '-c', BROKER, 'sh', kcat, log]
    },
    ready: () => brokerAnswers(address()),
  })
  return {
    get url() {
      return address()
    },
    stop: own.stop,
    async crash() {
      const former = address()
      await own.crash()
      while (await answers(former)) await sleep(5)
    },
    restart: own.restart,
  }
}

/**
 * All records of a topic, oldest first within each partition.
 * @param {string} brokers
 * @param {string} topic
 * @returns {Promise<import('./kafka.js').KafkaRecord[]>}
 */
export async function consumeKafka(brokers, topic) {
  const options = ['-b', brokers, '-C', '-t', topic, '-o', 'beginning', '-e', '-q', '-J', '-X', 'fetch.wait.max.ms=10']
  const settings = { timeout: 20_000, maxBuffer: 2 ** 28 }
  const { stdout } = await promisify(execFile)(foundOrInstalled(WANTED), options, settings)
  const lines = stdout.split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    const { partition, key, payload, headers = [] } = JSON.parse(line)
    const pairs = Array.from({ length: headers.length / 2 }, (_, at) => [headers[2 * at], headers[2 * at + 1]])
    return { partition, key, value: payload, headers: Object.fromEntries(pairs) }
  })
}

/**
 * The bytes of all values of a topic, concatenated.
 * @param {string} brokers
 * @param {string} topic
 * @returns {Promise<Buffer>}
 */
export async function rawKafka(brokers, topic) {
  const options = ['-b', brokers, '-C', '-t', topic, '-o', 'beginning', '-e', '-q', '-D', '', '-f', '%s']
  const { stdout } = await promisify(execFile)(foundOrInstalled(WANTED), options, {
    timeout: 20_000,
    encoding: 'buffer',
  })
  return stdout
}

/** @param {string} brokers */
async function brokerAnswers(brokers) {
  if (!(await answers(brokers.split(',')[0] ?? ''))) throw new Error(`no broker answers at ${brokers}`)
}

/** @param {string} address */
async function answers(address) {
  const [host, port] = address.split(':')
  if (host === undefined || port === undefined) return false
  const socket = connect(Number(port), host)
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(5_000) })
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
