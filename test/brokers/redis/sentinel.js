// @ts-check
/** Redis with Sentinel: a master with two replicas, and three sentinels with a quorum of two. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../servers/start-server.js'
import { eventually, LocalCluster } from '../local-cluster.js'
import { entriesOf, NO_STREAM, SETTINGS, server, tell, terminate } from './server.js'

/** @typedef {import('../cluster.js').Cluster} Cluster */

const NODES = ['redis-1', 'redis-2', 'redis-3']
const SENTINELS = ['sentinel-1', 'sentinel-2', 'sentinel-3']
const MASTER = 'orders'

/** @type {import('../cluster.js').BrokerKind} */
export const redisSentinelKind = {
  name: 'redis-sentinel',
  clients: ['@redis/client'],
  isLight: true,
  async prepare() {
    server()
  },
  open: openSentinelCluster,
}

/** @returns {Promise<Cluster>} */
export async function openSentinelCluster() {
  const cluster = new LocalCluster('sentinel', NODES)
  const [ports, sentinels] = [new Map(), new Map()]
  for (const name of NODES) ports.set(name, await freePort())
  for (const name of SENTINELS) sentinels.set(name, await freePort())
  const first = ports.get('redis-1')
  for (const [name, port] of ports) {
    // The settings are in a file, because Sentinel has a server write its new master there. Without the file, a
    // restarted server would be a second master.
    const file = join(cluster.folder(name), 'redis.conf')
    const pairs = ['--port', String(port), '--dir', cluster.folder(name), ...SETTINGS]
    const lines = pairs.flatMap((word, at) => (at % 2 === 0 ? [`${word.slice(2)} ${pairs[at + 1] || '""'}`] : []))
    if (name !== 'redis-1') lines.push(`replicaof 127.0.0.1 ${first}`)
    writeFileSync(file, `${lines.join('\n')}\n`)
    cluster.add(name, [server(), file])
  }
  for (const [name, port] of sentinels) {
    const file = join(cluster.folder(name), 'sentinel.conf')
    const watch = [`monitor ${MASTER} 127.0.0.1 ${first} 2`, `down-after-milliseconds ${MASTER} 3000`]
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${cluster.folder(name)}`,
      ...watch.map((each) => `sentinel ${each}`),
    ]
    writeFileSync(file, `${lines.join('\n')}\nsentinel failover-timeout ${MASTER} 10000\n`)
    cluster.add(name, [server(), file, '--sentinel'])
  }
  const opened = new SentinelCluster(cluster, ports, sentinels)
  await cluster.startAll(() => opened.healthy())
  return opened
}

/** @implements {Cluster} */
class SentinelCluster {
  #cluster
  #ports
  #sentinels

  /**
   * @param {LocalCluster} cluster
   * @param {ReadonlyMap<string, number>} ports @param {ReadonlyMap<string, number>} sentinels
   */
  constructor(cluster, ports, sentinels) {
    this.#cluster = cluster
    this.#ports = ports
    this.#sentinels = sentinels
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
    await eventually(async () => {
      if ((await this.leaderOf()) === node) throw new Error(`${node} is still the master`)
    })
    await this.#cluster.thaw(node)
  }

  async leaderOf() {
    const port = await this.#master()
    return [...this.#ports].find(([, each]) => each === port)?.[0] ?? ''
  }

  /** Waits until all sentinels name one master, and both other servers follow it. */
  async healthy() {
    await eventually(async () => {
      const named = new Set()
      for (const sentinel of this.#sentinels.values()) named.add(await this.#masterBy(sentinel))
      const [master] = named
      if (named.size !== 1) throw new Error('the sentinels do not agree on the master')
      const replication = String(await tell(Number(master), 'INFO', 'replication'))
      const online = replication.match(/state=online/g)?.length ?? 0
      if (!replication.includes('role:master') || online < this.#ports.size - 1) throw new Error('a replica is missing')
      const flags = JSON.stringify(await tell(this.#sentinels.get('sentinel-1') ?? 0, 'SENTINEL', 'MASTER', MASTER))
      if (!flags.includes('"num-slaves","2"') || !flags.includes('"num-other-sentinels","2"')) {
        throw new Error('the sentinels do not know all of the others yet')
      }
    })
  }

  /** @param {string} name */
  async makeDestination(name) {
    return name.replaceAll(/[^\w-]/g, '-')
  }

  /** @param {string} _ @param {string} stream @returns {import('../cluster.js').SinkRecipe} */
  sink(_, stream) {
    const sentinels = [...this.#sentinels.values()].map((port) => `redis://127.0.0.1:${port}`)
    const options = { stream, url: `redis://${MASTER}`, sentinels }
    return { file: 'redis-stream/index.js', make: 'redisStream', options }
  }

  async refusals() {
    await tell(await this.#master(), 'SET', NO_STREAM, 'text')
    return [{ name: 'not a stream', toOptions: { stream: NO_STREAM } }]
  }

  /** @param {string} stream */
  async read(stream) {
    return eventually(async () => entriesOf(await this.#master(), stream))
  }

  #master() {
    return this.#masterBy(this.#sentinels.get('sentinel-1') ?? 0)
  }

  /** @param {number} sentinel @returns {Promise<number>} the port of the master */
  async #masterBy(sentinel) {
    const [, port] = /** @type {[string, string]} */ (
      await tell(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER)
    )
    return Number(port)
  }
}
