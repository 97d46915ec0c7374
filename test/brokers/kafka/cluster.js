// @ts-check
/** Kafka: three brokers in KRaft mode, which are also controllers, and Belfry's three clients. */
import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import { foundOrInstalled } from '../../servers/apt-install.js'
import { findProgram } from '../../servers/find-program.js'
import { freePort } from '../../servers/start-server.js'
import { ServerProcess } from '../server-process.js'
import { makeCertificates } from './certificates.js'
import { CLIENT_FOLDER, classPath, installClients, java, newerNode } from './install.js'
import { PASSWORD, properties, USER } from './properties.js'

/** @typedef {import('../cluster.js').Cluster} Cluster */

const CLUSTER_ID = 'BelfryTests-0123456789A'
const HEAP = ['-Xmx256m', '-Xms128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
const PATIENCE_MS = 90_000
const MISSING_TOPICS = 5

/** @type {Readonly<Record<string, string>>} */
const PACKAGES = {
  kafkajs: 'kafkajs',
  confluent: '@confluentinc/kafka-javascript',
  platformatic: '@platformatic/kafka',
}

/** @type {import('../cluster.js').BrokerKind} */
export const kafkaKind = {
  name: 'kafka',
  clients: Object.keys(PACKAGES),
  async prepare(clients) {
    java()
    classPath()
    installClients(clients)
  },
  open: () => openKafkaCluster(),
}

/**
 * @param {{ brokers?: number, partitions?: number }} [size]
 * @returns {Promise<Cluster>}
 */
export async function openKafkaCluster({ brokers = 3, partitions = 6 } = {}) {
  const root = mkdtempSync(join(tmpdir(), 'belfry-kafka-cluster-'))
  const tls = makeCertificates(root)
  const ports = []
  for (let id = 1; id <= brokers; id += 1) {
    const [plain, secure, mutual, controller] = [await freePort(), await freePort(), await freePort(), await freePort()]
    ports.push({ id, plain, secure, mutual, controller })
  }
  /** @type {Map<string, ServerProcess>} */
  const processes = new Map()
  for (const own of ports) {
    const folder = join(root, `broker-${own.id}`)
    mkdirSync(folder)
    writeFileSync(join(folder, 'server.properties'), properties(own, ports, folder, { ...tls.broker, ca: tls.ca }))
    const command = [java(), ...HEAP, '-cp', classPath(), 'kafka.Kafka', join(folder, 'server.properties')]
    processes.set(`broker-${own.id}`, new ServerProcess({ name: `broker-${own.id}`, folder, command }))
  }
  format(root, ports)
  const cluster = new KafkaCluster({ root, ports, processes, tls, partitions })
  try {
    await Promise.all([...processes.values()].map((each) => each.start()))
    await cluster.healthy()
  } catch (error) {
    const said = [...processes.values()].map((each) => each.said).join('\n')
    await cluster.stop()
    throw new Error(`the Kafka cluster did not start: ${said}`, { cause: error })
  }
  return cluster
}

/**
 * Formats the first broker's storage folder, and copies it for the other brokers with their own node id: each format
 * would start a JVM.
 * @param {string} root @param {readonly import('./properties.js').Ports[]} ports
 */
function format(root, ports) {
  const folder = (/** @type {number} */ id) => join(root, `broker-${id}`)
  const [first, ...others] = ports.map(({ id }) => id)
  if (first === undefined) return
  const scram = ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((kind) => [
    '--add-scram',
    `${kind}=[name=${USER},password=${PASSWORD}]`,
  ])
  const tool = ['kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', join(folder(first), 'server.properties')]
  execFileSync(java(), [...HEAP, '-cp', classPath(), ...tool, ...scram], { stdio: 'pipe', timeout: 120_000 })
  for (const id of others) {
    cpSync(join(folder(first), 'data'), join(folder(id), 'data'), { recursive: true })
    const file = join(folder(id), 'data', 'meta.properties')
    const kept = readFileSync(file, 'utf8').replace(/^directory\.id=.*\n/m, '')
    writeFileSync(file, kept.replace(/^node\.id=.*$/m, `node.id=${id}`))
  }
}

/** @implements {Cluster} */
class KafkaCluster {
  #root
  #ports
  #processes
  #tls
  #numPartitions

  /**
   * @param {object} parts
   * @param {string} parts.root
   * @param {readonly import('./properties.js').Ports[]} parts.ports
   * @param {ReadonlyMap<string, ServerProcess>} parts.processes
   * @param {ReturnType<typeof makeCertificates>} parts.tls
   * @param {number} parts.partitions of each topic
   */
  constructor({ root, ports, processes, tls, partitions }) {
    this.#root = root
    this.#ports = ports
    this.#processes = processes
    this.#tls = tls
    this.#numPartitions = partitions
  }

  get nodes() {
    return [...this.#processes.keys()]
  }

  /** @param {string} topic */
  async leaderOf(topic) {
    const partitions = await this.#partitions([topic])
    const leads = (/** @type {string} */ node) => partitions.filter(({ leader }) => `broker-${leader}` === node).length
    return [...this.nodes].sort((one, other) => leads(other) - leads(one))[0] ?? ''
  }

  /** @param {string} node */
  terminate(node) {
    return this.#process(node).end('SIGTERM')
  }

  /** @param {string} node */
  kill(node) {
    return this.#process(node).end('SIGKILL')
  }

  /** @param {string} node */
  async start(node) {
    await this.#process(node).start()
  }

  /** @param {string} node */
  async freeze(node) {
    this.#process(node).signal('SIGSTOP')
  }

  /** @param {string} node */
  async thaw(node) {
    this.#process(node).signal('SIGCONT')
  }

  /**
   * Waits until all brokers are up and all replicas of these partitions are in sync.
   * @param {readonly string[]} [topics] all, if none are named
   */
  async healthy(topics) {
    const deadline = Date.now() + PATIENCE_MS
    for (;;) {
      try {
        const partitions = await this.#partitions(topics)
        if (partitions.every(({ isr, replicas }) => isr.length === replicas.length)) return
        if (Date.now() > deadline) throw new Error('replicas are not in sync')
      } catch (error) {
        if (Date.now() > deadline) throw error
      }
      await sleep(500)
    }
  }

  /** @param {string} name @param {Record<string, string>} [settings] */
  makeDestination(name, settings = {}) {
    return this.#createTopic(name, this.nodes.length, settings)
  }

  /** @param {string} name */
  makeUnreplicated(name) {
    return this.#createTopic(name, 1, { 'min.insync.replicas': '1' })
  }

  /** @param {string} node @param {string} topic */
  async placesOf(node, topic) {
    const partitions = await this.#partitions([topic])
    const own = partitions.filter(({ replicas }) => replicas.some((id) => `broker-${id}` === node))
    return own.map(({ partitionId }) => String(partitionId))
  }

  /** @param {string} name @param {number} replicas @param {Record<string, string>} settings */
  async #createTopic(name, replicas, settings) {
    const configEntries = Object.entries(settings).map(([setting, value]) => ({ name: setting, value }))
    const topic = {
      topic: name,
      numPartitions: this.#numPartitions,
      replicationFactor: replicas,
      configEntries,
    }
    await this.#asAdmin((admin) => admin.createTopics({ waitForLeaders: false, topics: [topic] }))
    await this.healthy([name])
    return name
  }

  get variants() {
    return ['plain', 'scram-sha-256', 'oauthbearer', 'scram-sha-512', 'mutual-tls']
  }

  get refusedVariant() {
    return 'wrong-password'
  }

  async refusals() {
    const small = await this.makeDestination(`small-${Date.now()}`, { 'max.message.bytes': '50000' })
    const missing = Array.from({ length: MISSING_TOPICS }, (_, at) => ({
      name: `no such topic ${at + 1}`,
      toOptions: { topic: `missing-${Date.now()}-${at + 1}` },
    }))
    return [...missing, { name: 'too large', toOptions: { topic: small }, payload: 'x'.repeat(100_000) }]
  }

  /**
   * @param {string} client
   * @param {string} topic @param {string} [variant] @returns {import('../cluster.js').SinkRecipe}
   */
  sink(client, topic, variant) {
    return {
      ...{ file: 'kafka/index.js', make: 'kafka' },
      options: { topic, client: PACKAGES[client], ...this.#access(variant) },
      ...(client === 'platformatic' ? { runtime: newerNode() } : {}),
      environment: { NODE_PATH: CLIENT_FOLDER },
    }
  }

  /** The brokers' addresses and the credentials for a variant. @param {string} [variant] */
  #access(variant) {
    const { ca, client } = this.#tls
    const at = (/** @type {'plain' | 'secure' | 'mutual'} */ kind) =>
      this.#ports.map((ports) => `127.0.0.1:${ports[kind]}`)
    if (variant === undefined) return { brokers: at('plain') }
    if (variant === 'mutual-tls') return { brokers: at('mutual'), ssl: { ca, ...client } }
    if (variant === 'oauthbearer')
      return { brokers: at('secure'), ssl: { ca }, sasl: { mechanism: variant, token: unsignedToken() } }
    const password = variant === 'wrong-password' ? 'wrong' : PASSWORD
    const mechanism = variant === 'wrong-password' ? 'scram-sha-512' : variant
    return { brokers: at('secure'), ssl: { ca }, sasl: { mechanism, username: USER, password } }
  }

  /** @param {string} topic */
  async read(topic) {
    const kcat = foundOrInstalled({ what: 'Kafka is read by kcat', package_: 'kcat', find: () => findProgram('kcat') })
    const options = ['-b', this.#plain.join(), '-C', '-t', topic, '-o', 'beginning', '-e', '-q', '-J']
    const { stdout } = await promisify(execFile)(kcat, options, { timeout: 120_000, maxBuffer: 2 ** 30 })
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const { partition, ts, key, payload } = JSON.parse(line)
        return { place: String(partition), key, body: payload, storedAt: ts }
      })
  }

  async stop() {
    await Promise.all([...this.#processes.values()].map((each) => each.end('SIGKILL')))
    rmSync(this.#root, { recursive: true, force: true })
  }

  get #plain() {
    return this.#ports.map(({ plain }) => `127.0.0.1:${plain}`)
  }

  /** @param {string} node */
  #process(node) {
    const found = this.#processes.get(node)
    if (found === undefined) throw new Error(`there is no ${node}: there is ${this.nodes.join(', ')}`)
    return found
  }

  /** @param {readonly string[]} [topics] all, if none are named */
  async #partitions(topics) {
    return this.#asAdmin(async (admin) => {
      const { brokers } = await admin.describeCluster()
      if (brokers.length < this.nodes.length) throw new Error('a broker is missing')
      const found = await admin.fetchTopicMetadata(topics === undefined ? undefined : { topics: [...topics] })
      return found.topics.flatMap(({ partitions }) => partitions)
    })
  }

  /**
   * @template T
   * @param {(admin: import('kafkajs').Admin) => Promise<T>} use
   */
  async #asAdmin(use) {
    const settings = { requestTimeout: 5_000, connectionTimeout: 2_000, retry: { retries: 2 } }
    const admin = new Kafka({ brokers: this.#plain, logLevel: logLevel.NOTHING, ...settings }).admin()
    try {
      await admin.connect()
      return await use(admin)
    } finally {
      await admin.disconnect().catch(() => {})
    }
  }
}

/** An unsigned token, which the brokers accept in this setup. */
function unsignedToken() {
  const seconds = Math.floor(Date.now() / 1_000)
  const claims = { sub: USER, iat: seconds, exp: seconds + 3_600 }
  const [head, body] = [{ alg: 'none' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  return `${head}.${body}.`
}
