// @ts-check
/**
 * Redis setups that keep every acknowledged write, with their faults: one server that syncs its log to disk before it
 * answers, behind proxies; and a cluster whose writes are acknowledged once a replica has them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { wrongServerClock } from '../servers/faketime.js'
import { startOwnRedis, startRedisCluster, tellRedis, untilClusterReady } from '../servers/redis.js'
import { clockSkews } from './clock-skews.js'
import { CONNECTION_FAULTS, PROCESS_FAULTS } from './plan.js'
import { injectConnectionFault, proxy } from './proxy.js'
import { randomFrom } from './random.js'

/** Long enough that a busy machine's delays are small in comparison. */
const LEASE_MS = 3_000
/** How far the replicas' clocks are behind; a replica is promoted after a failover. */
const REPLICA_SKEW_MS = -5_000

/** @typedef {import('./store-setups.js').StoreSetup} StoreSetup */

/** @param {number} processes @param {number} seed @returns {Promise<StoreSetup>} */
export async function redisSetup(processes, seed) {
  const random = randomFrom(seed + 1)
  const clocks = clockSkews(processes, random)
  const server = await startOwnRedis(['--appendfsync', 'always'])
  const port = Number(new URL(server.url).port)
  const proxies = await Promise.all(Array.from({ length: processes }, () => proxy(port, random)))
  const inTurn = oneAtATime()

  /** @param {import('./plan.js').Fault} fault @param {(ms: number) => Promise<void>} wait */
  async function injectServerFault({ kind, forMs }, wait) {
    if (kind === 'flush') await tellRedis(server.url, 'SCRIPT', 'FLUSH')
    else if (kind === 'pause') await pause(server.url, forMs, wait)
    else {
      await server.crash()
      await wait(forMs)
      await server.restart()
    }
  }

  return {
    kinds: [...PROCESS_FAULTS, ...CONNECTION_FAULTS, 'pause', 'flush', 'crash'],
    outages: ['crash', 'pause'],
    leaseMs: LEASE_MS,
    clockErrorMs: 0,
    frozenHoldsStore: false,
    store: { name: 'redis', url: server.url, client: '@redis/client' },
    // One half of the processes uses @redis/client, the other ioredis, each with its default options.
    storeOf: (at) => ({
      name: 'redis',
      url: `redis://127.0.0.1:${proxies[at]?.port}`,
      client: at % 2 === 0 ? '@redis/client' : 'ioredis',
    }),
    ...clocks,
    inject: (fault, wait) =>
      fault.kind === 'flush' || fault.kind === 'pause' || fault.kind === 'crash'
        ? inTurn(() => injectServerFault(fault, wait))
        : injectConnectionFault(proxies[fault.process], fault, wait),
    async close() {
      await Promise.all(proxies.map((own) => own.close()))
      await server.stop()
    },
  }
}

/**
 * Three masters, and three replicas whose clocks are behind. A killed server comes back as a replica.
 * @param {number} processes
 * @param {number} seed
 * @returns {Promise<StoreSetup>}
 */
export async function clusterSetup(processes, seed) {
  const clocks = clockSkews(processes, randomFrom(seed + 1))
  const cluster = await startRedisCluster(wrongServerClock(REPLICA_SKEW_MS))
  /** @type {import('./stores.js').ClusterKind} */
  const store = { name: 'redis-cluster', nodes: cluster.url.split(','), waitReplicas: 1 }
  const inTurn = oneAtATime()

  /** @param {import('./plan.js').Fault} fault @param {(ms: number) => Promise<void>} wait */
  async function injectNodeFault({ kind, process, forMs }, wait) {
    const masters = await mastersOf(cluster.nodes)
    const victim = masters[process % masters.length]
    if (victim === undefined) throw new Error('the cluster has no masters')
    if (kind === 'flush') {
      await tellRedis(victim.url, 'SCRIPT', 'FLUSH')
      return
    }
    if (kind === 'pause') return pause(victim.url, forMs, wait)
    await victim.crash()
    const others = cluster.nodes.filter((node) => node !== victim)
    while ((await mastersOf(others)).length < masters.length) await sleep(50)
    await wait(forMs)
    await victim.restart()
    await untilClusterReady(cluster.nodes)
  }

  return {
    kinds: [...PROCESS_FAULTS, 'pause', 'flush', 'failover'],
    outages: ['failover', 'pause'],
    leaseMs: LEASE_MS,
    clockErrorMs: -REPLICA_SKEW_MS,
    frozenHoldsStore: false,
    store,
    storeOf: () => store,
    ...clocks,
    inject: (fault, wait) => inTurn(() => injectNodeFault(fault, wait)),
    close: () => cluster.stop(),
  }
}

/** Serialises the faults of servers: a server that is down accepts no command. */
function oneAtATime() {
  let last = Promise.resolve()
  return (/** @type {() => Promise<void>} */ work) => {
    last = last.then(work)
    return last
  }
}

/** @param {readonly import('../servers/start-server.js').OwnServer[]} nodes */
async function mastersOf(nodes) {
  const roles = await Promise.all(nodes.map(({ url }) => tellRedis(url, 'ROLE')))
  return nodes.filter((_, at) => String(roles[at]).startsWith('master'))
}

/**
 * Delays all clients' commands for a while.
 * @param {string} url @param {number} forMs @param {(ms: number) => Promise<void>} wait
 */
async function pause(url, forMs, wait) {
  await tellRedis(url, 'CLIENT', 'PAUSE', String(forMs), 'ALL')
  await wait(forMs)
}
