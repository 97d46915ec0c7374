// @ts-check
/**
 * A real Redis or Valkey for tests and benches. `BELFRY_TEST_REDIS` names a running one. Without it, this module starts
 * one, and installs it if there is none. It syncs its append-only file every second.
 */
import { execFileSync } from 'node:child_process'
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { foundOrInstalled } from './apt-install.js'
import { findProgram } from './find-program.js'
import { freePort, startServer, untilReady } from './start-server.js'

const WANTED = {
  what: 'there is no Redis for the tests: set BELFRY_TEST_REDIS to a URL, or install redis-server',
  package_: 'redis-server',
  find: () => process.env.BELFRY_TEST_REDIS_PROGRAM ?? findProgram('redis-server') ?? findProgram('valkey-server'),
}

const SETTINGS = ['--bind', '127.0.0.1', '--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '']

/** @returns {Promise<import('./start-server.js').RunningServer>} */
export async function startRedis() {
  const given = process.env.BELFRY_TEST_REDIS
  if (given !== undefined && given !== '') {
    await untilReady(given, 10_000, redisAnswers)
    return { url: given, stop: async () => {} }
  }
  return startOwnRedis()
}

/**
 * A server for one test.
 * @param {string[]} [settings]
 * @param {{ port?: number, password?: string, env?: Record<string, string> }} [where] its port, password and
 *   environment
 * @returns {Promise<import('./start-server.js').OwnServer>}
 */
export async function startOwnRedis(settings = [], { port, password, env = {} } = {}) {
  const program = foundOrInstalled(WANTED)
  const secret = password === undefined ? [] : ['--requirepass', password]
  // Only the server gets this environment: a shell under libfaketime would leave its shared memory behind.
  const inEnv = ['env', ...Object.entries(env).map(([name, value]) => `${name}=${value}`), program]
  return startServer({
    name: 'redis',
    ...(port === undefined ? {} : { port }),
    // SIGKILL, because a server that is writing its first append-only file refuses to stop. The data is deleted anyway.
    signal: 'KILL',
    crash_: 'KILL',
    url: (own) => `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${own}`,
    prepare: ({ folder, port: own }) => [
      ...inEnv,
      '--port',
      String(own),
      '--dir',
      folder,
      ...SETTINGS,
      ...secret,
      ...settings,
    ],
    ready: redisAnswers,
  })
}

/**
 * Three masters with a replica each. `url` has the URLs of all nodes, separated by commas, the masters first.
 * @param {Record<string, string>} [replicaEnv] the environment of the nodes that begin as replicas
 * @returns {Promise<import('./start-server.js').RunningServer & { nodes: import('./start-server.js').OwnServer[] }>}
 */
export async function startRedisCluster(replicaEnv = {}) {
  const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', '--repl-diskless-sync-delay', '0']
  const ports = await clusterPorts(6)
  const envOf = (/** @type {number} */ at) => (at < 3 ? {} : replicaEnv)
  const nodes = await Promise.all(ports.map((port, at) => startOwnRedis(settings, { port, env: envOf(at) })))
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()))
  }
  try {
    const cli = findProgram('redis-cli') ?? findProgram('valkey-cli') ?? 'redis-cli'
    const places = ports.map((port) => `127.0.0.1:${port}`)
    execFileSync(cli, ['--cluster', 'create', ...places, '--cluster-replicas', '1', '--cluster-yes'], { stdio: 'pipe' })
    await untilClusterReady(nodes)
  } catch (error) {
    await stop()
    throw error
  }
  return { url: nodes.map(({ url }) => url).join(','), nodes, stop }
}

/**
 * Finds ports whose cluster bus port, ten thousand higher, is free as well.
 * @param {number} count
 */
async function clusterPorts(count) {
  const ports = []
  for (let port = 17_000 + Math.floor(Math.random() * 5_000); ports.length < count; port += 1) {
    try {
      ports.push(await freePort(port), await freePort(port + 10_000))
      ports.pop()
    } catch {
      // Another server uses one of the two ports.
    }
  }
  return ports
}

/**
 * Waits until every master has a replica that follows it, and all nodes agree on the owner of each slot.
 * @param {readonly { url: string }[]} nodes
 */
export async function untilClusterReady(nodes) {
  await Promise.all(nodes.map(({ url }) => untilReady(url, 30_000, clusterAnswers)))
}

/** @param {string} url */
async function clusterAnswers(url) {
  const [info, replication] = [await tellRedis(url, 'CLUSTER', 'INFO'), await tellRedis(url, 'INFO', 'replication')]
  if (!String(info).includes('cluster_state:ok')) throw new Error('the cluster is not ready')
  const complete = /slave0:.*state=online|master_link_status:up/.test(String(replication))
  if (!complete) throw new Error('a replica is not ready')
}

/**
 * A Sentinel that watches one master alone. It notices within a second that the master is down, and promotes a replica.
 * @param {string} name
 * @param {string} masterUrl
 */
export async function startOwnSentinel(name, masterUrl) {
  const program = foundOrInstalled(WANTED)
  const { hostname, port: master } = new URL(masterUrl)
  return startServer({
    name: 'sentinel',
    signal: 'KILL',
    crash_: 'KILL',
    url: (own) => `redis://127.0.0.1:${own}`,
    prepare: ({ folder, port, as }) => {
      const file = join(folder, 'sentinel.conf')
      const watch = [`monitor ${name} ${hostname} ${master} 1`, `down-after-milliseconds ${name} 1000`]
      const lines = [`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, ...watch.map((each) => `sentinel ${each}`)]
      writeFileSync(file, `${lines.join('\n')}\nsentinel failover-timeout ${name} 5000\n`)
      // Sentinel writes its state into this file.
      if (as.uid !== undefined && as.gid !== undefined) chownSync(file, as.uid, as.gid)
      return [program, file, '--sentinel']
    },
    ready: redisAnswers,
  })
}

/** @param {string} url */
async function redisAnswers(url) {
  await tellRedis(url, 'PING')
}

/**
 * Sends one command over a new connection.
 * @param {string} url
 * @param {string} command
 * @param {string[]} args
 */
export async function tellRedis(url, command, ...args) {
  const settings = { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0, connectTimeout: 5_000 }
  const client = new Redis(url, { ...settings, enableReadyCheck: false })
  client.on('error', () => {})
  try {
    await client.connect()
    return await client.call(command, args)
  } finally {
    client.disconnect()
  }
}
