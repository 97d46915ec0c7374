// @ts-check
/**
 * RabbitMQ: three nodes with quorum queues. They use their own epmd (Erlang's node registry) and listen only on
 * loopback, so other Erlang programs on this machine do not interfere.
 */
import { execFile } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { connect } from 'amqplib'
import { foundOrInstalled } from '../../servers/apt-install.js'
import { findProgram } from '../../servers/find-program.js'
import { freePort } from '../../servers/start-server.js'
import { eventually, LocalCluster } from '../local-cluster.js'
import { drain } from './stomp.js'

/** @typedef {import('../cluster.js').Cluster} Cluster */
/** @typedef {{ name: string, port: number, stomp: number, nodes: number }} Node */

const NODES = ['rabbit-1', 'rabbit-2', 'rabbit-3']
const SERVER = '/usr/lib/rabbitmq/bin/rabbitmq-server'
const COOKIE = 'belfrytests'
const COMMAND_MS = 30_000
const MAX_MESSAGE_BYTES = 150_000
/** The body of a marker message: `read` appends it to the queue and reads up to it. */
const LAST = '"last"'

/** @type {import('../cluster.js').BrokerKind} */
export const rabbitKind = {
  name: 'rabbitmq',
  clients: ['amqplib'],
  async prepare() {
    server()
  },
  open: openRabbitCluster,
}

function server() {
  return foundOrInstalled({
    ...{ what: `there is no RabbitMQ for the tests (looked for ${SERVER})`, package_: 'rabbitmq-server' },
    find: () => (existsSync(SERVER) ? SERVER : undefined),
  })
}

/** @returns {Promise<Cluster>} */
export async function openRabbitCluster() {
  const epmd = findProgram('epmd')
  if (epmd === undefined) throw new Error('there is a RabbitMQ, and no epmd of Erlang: install erlang-base')
  const cluster = new LocalCluster('rabbitmq', NODES)
  const register = await freePort()
  cluster.add('epmd', [epmd, '-address', '127.0.0.1'], { ERL_EPMD_PORT: String(register) })
  /** @type {Node[]} */
  const nodes = []
  for (const name of NODES) {
    nodes.push({ name, port: await freePort(), stomp: await freePort(), nodes: await freePort() })
  }
  const environments = new Map(
    nodes.map((node) => {
      const folder = cluster.folder(node.name)
      writeFileSync(join(folder, 'rabbitmq.conf'), config(node))
      writeFileSync(join(folder, 'plugins'), '[rabbitmq_stomp].\n')
      writeFileSync(join(folder, '.erlang.cookie'), COOKIE, { mode: 0o400 })
      const env = environment(folder, node, register)
      cluster.add(node.name, [server()], env)
      return [node.name, env]
    }),
  )
  const opened = new RabbitCluster(cluster, nodes, environments)
  await cluster.startAll(() => opened.healthy())
  return opened
}

/** @param {Node} own */
function config(own) {
  const members = NODES.map((name, at) => `cluster_formation.classic_config.nodes.${at + 1} = ${name}@localhost`)
  return [
    ...['cluster_formation.peer_discovery_backend = classic_config', ...members],
    `stomp.listeners.tcp.1 = 127.0.0.1:${own.stomp}`,
    `max_message_size = ${MAX_MESSAGE_BYTES}`,
    'vm_memory_high_watermark.absolute = 1GB',
    'disk_free_limit.absolute = 50MB',
    '',
  ].join('\n')
}

/**
 * @param {string} folder
 * @param {Node} node
 * @param {number} register
 * @returns {Record<string, string>}
 */
function environment(folder, { name, port, nodes }, register) {
  return {
    HOME: folder,
    ERL_EPMD_PORT: String(register),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `${name}@localhost`,
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
      '+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}',
    // Makes the script exec the server, so that a signal reaches the server itself.
    RUNNING_UNDER_SYSTEMD: 'true',
  }
}

/** @implements {Cluster} */
class RabbitCluster {
  #cluster
  #nodes
  #environments

  /**
   * @param {LocalCluster} cluster
   * @param {readonly Node[]} nodes @param {ReadonlyMap<string, Record<string, string>>} environments
   */
  constructor(cluster, nodes, environments) {
    this.#cluster = cluster
    this.#nodes = nodes
    this.#environments = environments
  }

  get nodes() {
    return this.#cluster.nodes
  }

  terminate = (/** @type {string} */ node) => this.#cluster.terminate(node)
  kill = (/** @type {string} */ node) => this.#cluster.kill(node)
  start = (/** @type {string} */ node) => this.#cluster.start(node)
  freeze = (/** @type {string} */ node) => this.#cluster.freeze(node)
  thaw = (/** @type {string} */ node) => this.#cluster.thaw(node)
  stop = () => this.#cluster.stop()

  /** @param {string} queue */
  async leaderOf(queue) {
    const found = (await this.#queues()).find(({ name }) => name === queue)
    if (found === undefined) throw new Error(`there is no queue ${queue}`)
    return String(found.leader).replace('@localhost', '')
  }

  /** Waits until every node accepts connections, and every queue has all its members online. */
  async healthy() {
    await eventually(async () => {
      for (const { port } of this.#nodes) await this.#withChannel(port, async () => {})
      const behind = (await this.#queues()).find(({ online }) => online.length < this.#nodes.length)
      if (behind !== undefined) throw new Error(`queue ${behind.name} has only ${behind.online} online`)
    }, 120_000)
  }

  /** @param {string} name */
  async makeDestination(name) {
    const port = this.#nodes[0]?.port ?? 0
    const quorum = { 'x-queue-type': 'quorum', 'x-quorum-initial-group-size': this.#nodes.length }
    await eventually(() =>
      this.#withChannel(port, (channel) => channel.assertQueue(name, { durable: true, arguments: quorum })),
    )
    return name
  }

  /** @param {string} _ @param {string} queue @returns {import('../cluster.js').SinkRecipe} */
  sink(_, queue) {
    const url = this.#nodes.map(({ port }) => `amqp://guest:guest@127.0.0.1:${port}`)
    return { file: 'rabbitmq/index.js', make: 'rabbitmq', options: { url, queue } }
  }

  async refusals() {
    return [
      { name: 'missing exchange', toOptions: { exchange: 'nowhere', routingKey: 'orders' } },
      { name: 'too large', payload: 'x'.repeat(MAX_MESSAGE_BYTES) },
    ]
  }

  /** @param {string} queue */
  async read(queue) {
    await eventually(() => this.#append(queue, LAST))
    const bodies = await drain(this.#nodes[0]?.stomp ?? 0, queue, LAST)
    return bodies.map((body) => ({ place: queue, key: String(JSON.parse(body).schedule_id), body }))
  }

  /** @param {string} queue @param {string} body */
  async #append(queue, body) {
    await this.#withConnection(this.#nodes[0]?.port ?? 0, async (connection) => {
      const channel = await connection.createConfirmChannel()
      channel.sendToQueue(queue, Buffer.from(body))
      await channel.waitForConfirms()
    })
  }

  /** @returns {Promise<{ name: string, leader: string, online: string[] }[]>} */
  async #queues() {
    return eventually(async () => {
      const answers = this.#nodes.filter(({ name }) => this.#cluster.process(name).isRunning)
      for (const { name } of answers) {
        const found = await this.#tell(name, 'list_queues', 'name', 'leader', 'online').catch(() => undefined)
        if (found !== undefined) return JSON.parse(found)
      }
      throw new Error('no node says which queues there are')
    })
  }

  /** @param {string} name @param {string[]} command */
  async #tell(name, ...command) {
    const ctl = join(dirname(server()), 'rabbitmqctl')
    const env = { ...process.env, ...this.#environments.get(name) }
    const args = ['--quiet', '--node', `${name}@localhost`, '--formatter', 'json', ...command]
    const { stdout } = await promisify(execFile)(ctl, args, { env, timeout: COMMAND_MS })
    return stdout
  }

  /**
   * @template T
   * @param {number} port
   * @param {(channel: import('amqplib').Channel) => Promise<T>} use
   */
  async #withChannel(port, use) {
    return this.#withConnection(port, async (connection) => use(await connection.createChannel()))
  }

  /**
   * @template T
   * @param {number} port
   * @param {(connection: import('amqplib').ChannelModel) => Promise<T>} use
   */
  async #withConnection(port, use) {
    const connection = await connect(`amqp://guest:guest@127.0.0.1:${port}`, { timeout: 5_000 })
    connection.on('error', () => {})
    try {
      return await use(connection)
    } finally {
      await connection.close().catch(() => {})
    }
  }
}
