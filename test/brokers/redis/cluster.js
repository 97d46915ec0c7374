// @ts-check
/** Redis Cluster: three masters with a replica each. */
import { execFileSync } from 'node:child_process'
import { findProgram } from '../../servers/find-program.js'
import { freePort } from '../../servers/start-server.js'
import { eventually, LocalCluster } from '../local-cluster.js'
import { entriesOf, NO_STREAM, SETTINGS, server, tell, terminate } from './server.js'

/** @typedef {import('../cluster.js').Cluster} Cluster */
/** @typedef {[number, number, [string, number]][]} Slots from, to, and the address of the master */

const NODES = ['redis-1', 'redis-2', 'redis-3', 'redis-4', 'redis-5', 'redis-6']

/** @type {import('../cluster.js').BrokerKind} */
export const redisClusterKind = {
  name: 'redis-cluster',
  clients: ['@redis/client'],
  isLight: true,
  async prepare() {
    server()
  },
  open: openRedisCluster,
}

/** @returns {Promise<Cluster>} */
export async function openRedisCluster() {
  const cluster = new LocalCluster('redis', NODES)
  const ports = new Map()
  for (const name of NODES) {
    const port = await portWithBus()
    ports.set(name, port)
    const clustered = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '3000']
    cluster.add(name, [server(), '--port', String(port), '--dir', cluster.folder(name), ...clustered, ...SETTINGS])
  }
  const opened = new RedisCluster(cluster, ports)
  await cluster.startAll(async () => {
    await eventually(() => Promise.all([...ports.values()].map((port) => tell(port, 'PING'))))
    const places = [...ports.values()].map((port) => `127.0.0.1:${port}`)
    const cli = findProgram('redis-cli') ?? findProgram('valkey-cli') ?? 'redis-cli'
    execFileSync(cli, ['--cluster', 'create', ...places, '--cluster-replicas', '1', '--cluster-yes'], { stdio: 'pipe' })
    await opened.healthy()
  })
  return opened
}

/** The cluster bus uses the port number plus ten thousand. */
async function portWithBus() {
  for (let port = 12_000 + Math.floor(Math.random() * 8_000); ; port += 1) {
    try {
      await freePort(port + 10_000)
      return await freePort(port)
    } catch {
      // Another server uses one of the two ports.
    }
  }
}

/** @implements {Cluster} */
class RedisCluster {
  #cluster
  #ports

  /** @param {LocalCluster} cluster @param {ReadonlyMap<string, number>} ports */
  constructor(cluster, ports) {
    this.#cluster = cluster
    this.#ports = ports
  }

  get nodes() {
    return this.#cluster.nodes
  }

  terminate = (/** @type {string} */ node) => terminate(this.#cluster, node)
  kill = (/** @type {string} */ node) => this.#cluster.kill(node)
  start = (/** @type {string} */ node) => this.#cluster.start(node)
  freeze = (/** @type {string} */ node) => this.#cluster.freeze(node)
  stop = () => this.#cluster.stop()

  /**
   * Waits for the failover first. Replication is asynchronous: until then a woken master would confirm entries that the
   * failover drops, which no client can prevent.
   * @param {string} node
   */
  async thaw(node) {
    const own = this.#ports.get(node)
    const others = [...this.#ports].filter(([name]) => name !== node)
    await eventually(async () => {
      for (const [name, port] of others) {
        const slots = /** @type {Slots} */ (await tell(port, 'CLUSTER', 'SLOTS'))
        if (slots.some(([, , [, master]]) => Number(master) === own))
          throw new Error(`for ${name}, ${node} is a master`)
      }
    })
    await this.#cluster.thaw(node)
  }

  /** @param {string} stream */
  async leaderOf(stream) {
    const port = await this.#masterOf(stream)
    return [...this.#ports].find(([, each]) => each === port)?.[0] ?? ''
  }

  /** Waits until every node reports all slots as served, and every master has its replica. */
  async healthy() {
    await eventually(async () => {
      for (const [name, port] of this.#ports) {
        if (!String(await tell(port, 'CLUSTER', 'INFO')).includes('cluster_state:ok'))
          throw new Error(`${name} is not ok`)
        const replication = String(await tell(port, 'INFO', 'replication'))
        if (!/slave0:.*state=online|master_link_status:up/.test(replication)) throw new Error(`${name} is alone`)
      }
    })
  }

  /** @param {string} name */
  async makeDestination(name) {
    return name.replaceAll(/[^\w-]/g, '-')
  }

  /** @param {string} _ @param {string} stream @returns {import('../cluster.js').SinkRecipe} */
  sink(_, stream) {
    const nodes = [...this.#ports.values()].map((port) => `redis://127.0.0.1:${port}`)
    return { file: 'redis-stream/index.js', make: 'redisStream', options: { stream, nodes } }
  }

  async refusals() {
    await tell(await this.#masterOf(NO_STREAM), 'SET', NO_STREAM, 'text')
    return [{ name: 'not a stream', toOptions: { stream: NO_STREAM } }]
  }

  /** @param {string} stream */
  async read(stream) {
    return eventually(async () => entriesOf(await this.#masterOf(stream), stream))
  }

  /** @param {string} stream @returns {Promise<number>} the port of the master that has it */
  async #masterOf(stream) {
    return eventually(async () => {
      for (const [name, port] of this.#ports) {
        if (!this.#cluster.process(name).isRunning) continue
        const slot = Number(await tell(port, 'CLUSTER', 'KEYSLOT', stream))
        const slots = /** @type {Slots} */ (await tell(port, 'CLUSTER', 'SLOTS'))
        const found = slots.find(([from, to]) => slot >= from && slot <= to)
        if (found !== undefined) return Number(found[2][1])
      }
      throw new Error(`no node says where ${stream} is`)
    })
  }
}
