// @ts-check
/**
 * NATS: three servers with JetStream, and a leaf node without it. Belfry connects to the servers or to the leaf node.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { foundOrInstalled } from '../../servers/apt-install.js'
import { findProgram } from '../../servers/find-program.js'
import { freePort } from '../../servers/start-server.js'
import { eventually, LocalCluster } from '../local-cluster.js'
import { NatsWire } from './wire.js'

/** @typedef {import('../cluster.js').Cluster} Cluster */
/** @typedef {{ name: string, port: number, routes: number, leaves: number, monitor: number }} Node */

const NODES = ['nats-1', 'nats-2', 'nats-3']
const REQUESTS_AT_ONCE = 500
const MAX_PAYLOAD = 150_000

/** @type {import('../cluster.js').BrokerKind} */
export const natsKind = {
  name: 'nats',
  clients: ['members', 'leaf node'],
  isLight: true,
  async prepare() {
    server()
  },
  open: openNatsCluster,
}

function server() {
  return foundOrInstalled({
    ...{ what: 'there is no nats-server for the tests', package_: 'nats-server' },
    find: () => findProgram('nats-server'),
  })
}

/** @returns {Promise<Cluster>} */
export async function openNatsCluster() {
  const cluster = new LocalCluster('nats', NODES)
  /** @type {Node[]} */
  const nodes = []
  for (const name of NODES) {
    const [port, routes, leaves, monitor] = [await freePort(), await freePort(), await freePort(), await freePort()]
    nodes.push({ name, port, routes, leaves, monitor })
  }
  const leafPort = await freePort()
  for (const node of nodes) {
    const file = join(cluster.folder(node.name), 'nats.conf')
    writeFileSync(file, memberConfig(node, nodes, cluster.folder(node.name)))
    cluster.add(node.name, [server(), '-c', file])
  }
  const leafFile = join(cluster.folder('leaf'), 'nats.conf')
  const remotes = nodes.map(({ leaves }) => `"nats-leaf://127.0.0.1:${leaves}"`).join(', ')
  writeFileSync(
    leafFile,
    `server_name: leaf\nlisten: "127.0.0.1:${leafPort}"\nmax_payload: ${MAX_PAYLOAD}\nleafnodes { reconnect: 1, remotes: [{ urls: [${remotes}] }] }\n`,
  )
  cluster.add('leaf', [server(), '-c', leafFile])
  const opened = new NatsCluster(cluster, nodes, leafPort)
  await cluster.startAll(() => opened.healthy())
  return opened
}

/** @param {Node} own @param {readonly Node[]} all @param {string} folder */
function memberConfig(own, all, folder) {
  const routes = all.map(({ routes: port }) => `"nats-route://127.0.0.1:${port}"`).join(', ')
  return [
    `server_name: ${own.name}`,
    `listen: "127.0.0.1:${own.port}"`,
    `http: "127.0.0.1:${own.monitor}"`,
    `max_payload: ${MAX_PAYLOAD}`,
    `jetstream { store_dir: "${join(folder, 'data')}" }`,
    `cluster { name: belfry, listen: "127.0.0.1:${own.routes}", routes: [${routes}] }`,
    `leafnodes { listen: "127.0.0.1:${own.leaves}" }`,
    '',
  ].join('\n')
}

/** @implements {Cluster} */
class NatsCluster {
  #cluster
  #nodes
  #leafPort

  /** @param {LocalCluster} cluster @param {readonly Node[]} nodes @param {number} leafPort */
  constructor(cluster, nodes, leafPort) {
    this.#cluster = cluster
    this.#nodes = nodes
    this.#leafPort = leafPort
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

  /** @param {string} stream */
  async leaderOf(stream) {
    const info = await this.#ask(`STREAM.INFO.${stream}`)
    if (info.cluster.leader === undefined) throw new Error(`${stream} has no leader`)
    return info.cluster.leader
  }

  /** Waits until every server has caught up, and every stream has a leader with two current followers. */
  async healthy() {
    await eventually(async () => {
      for (const { name, monitor } of this.#nodes) {
        const url = `http://127.0.0.1:${monitor}/healthz`
        const { status } = await fetch(url, { signal: AbortSignal.timeout(3_000) })
        if (status !== 200) throw new Error(`${name} is not healthy`)
      }
      const { streams } = await this.#askOnce('STREAM.LIST')
      for (const { config, cluster } of streams ?? []) {
        const current = (cluster.replicas ?? []).filter((/** @type {any} */ each) => each.current && !each.offline)
        if (current.length < this.#nodes.length - 1) throw new Error(`${config.name} has not caught up`)
      }
    })
  }

  /** @param {string} name */
  async makeDestination(name) {
    const stream = name.replaceAll(/[^\w-]/g, '-')
    const settings = { name: stream, subjects: [`${stream}.>`], num_replicas: 3, storage: 'file', retention: 'limits' }
    await this.#ask(`STREAM.CREATE.${stream}`, { ...settings, discard: 'old', max_msgs: -1, max_bytes: -1, max_age: 0 })
    return stream
  }

  /** @param {string} client @param {string} stream @returns {import('../cluster.js').SinkRecipe} */
  sink(client, stream) {
    const ports = client === 'leaf node' ? [this.#leafPort] : this.#nodes.map(({ port }) => port)
    const servers = ports.map((port) => `nats://127.0.0.1:${port}`)
    return { file: 'nats/index.js', make: 'nats', options: { subject: `${stream}.events`, servers } }
  }

  /**
   * Through a leaf node, Belfry reaches no JetStream API and cannot tell a missing stream from an election. It retries
   * such an event until its attempts are used up, which takes hours, so the test leaves this refusal out.
   * @param {string} client
   */
  async refusals(client) {
    const tooLarge = { name: 'too large', payload: 'x'.repeat(MAX_PAYLOAD) }
    if (client === 'leaf node') return [tooLarge]
    return [{ name: 'missing stream', toOptions: { subject: 'no.such.stream' } }, tooLarge]
  }

  /** @param {string} stream */
  async read(stream) {
    const { state } = await this.#ask(`STREAM.INFO.${stream}`)
    const arrived = []
    for (let seq = state.first_seq; seq <= state.last_seq; seq += REQUESTS_AT_ONCE) {
      const count = Math.min(REQUESTS_AT_ONCE, state.last_seq - seq + 1)
      arrived.push(...(await eventually(() => this.#messages(stream, seq, count), 20_000)))
    }
    return arrived
  }

  /** @param {string} stream @param {number} from @param {number} count */
  #messages(stream, from, count) {
    return this.#withWire((wire) => {
      const sequence = Array.from({ length: count }, (_, at) => from + at)
      return Promise.all(
        sequence.map(async (seq) => {
          const { message } = await wire.ask(`STREAM.MSG.GET.${stream}`, { seq })
          const body = Buffer.from(message.data, 'base64').toString()
          return { place: stream, key: JSON.parse(body).schedule_id, body, storedAt: Date.parse(message.time) }
        }),
      )
    })
  }

  /** @param {string} subject @param {object} [body] */
  #ask(subject, body) {
    return eventually(() => this.#askOnce(subject, body))
  }

  /** @param {string} subject @param {object} [body] */
  #askOnce(subject, body) {
    return this.#withWire((wire) => wire.ask(subject, body))
  }

  /**
   * Connects to the first server that accepts the connection.
   * @template T
   * @param {(wire: NatsWire) => Promise<T>} use
   */
  async #withWire(use) {
    let last
    for (const { port } of this.#nodes) {
      try {
        const wire = await NatsWire.connect(port)
        try {
          return await use(wire)
        } finally {
          wire.close()
        }
      } catch (error) {
        last = error
      }
    }
    throw last
  }
}
