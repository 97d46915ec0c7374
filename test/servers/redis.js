// @ts-check
/**
 * A real Redis for tests and benches: the one that `BELFRY_TEST_REDIS` names, else a server of our own from the binary on
 * this machine, Redis or Valkey, which is installed if there is none. Its log of writes is on disk every second.
 */
import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { Redis } from 'ioredis'
import { foundOrInstalled } from './apt.js'
import { freePort, startOwn, untilReady } from './own-server.js'

const WANTED = {
  what: 'there is no Redis for the tests: set BELFRY_TEST_REDIS to a URL, or install redis-server',
  package_: 'redis-server',
  find: () => binary('redis-server') ?? binary('valkey-server'),
}

const SETTINGS = ['--bind', '127.0.0.1', '--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '']

/** @returns {Promise<import('./own-server.js').RunningServer>} */
export async function startRedis() {
  const given = process.env.BELFRY_TEST_REDIS
  if (given !== undefined && given !== '') {
    await untilReady(given, 10_000, redisAnswers)
    return { url: given, stop: async () => {} }
  }
  return startOwnRedis()
}

/**
 * A server that nobody else uses.
 * @param {string[]} [settings]
 * @param {{ port?: number, password?: string, env?: Record<string, string> }} [where] where it listens, for whom, and in
 *   which environment
 * @returns {Promise<import('./own-server.js').OwnServer>}
 */
export async function startOwnRedis(settings = [], { port, password, env = {} } = {}) {
  const program = foundOrInstalled(WANTED)
  const secret = password === undefined ? [] : ['--requirepass', password]
  // Only the server's own: a shell with a wrong clock would leave things behind.
  const inEnv = ['env', ...Object.entries(env).map(([name, value]) => `${name}=${value}`), program]
  return startOwn({
    name: 'redis',
    ...(port === undefined ? {} : { port }),
    // Its data goes with it. Asked politely, one that is just writing its first log would refuse, and stay for ever.
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
 * Three masters with a replica each. Its URL is that of all nodes, separated by commas, the masters first.
 * @param {Record<string, string>} [replicaEnv] the environment of those that begin as replicas
 * @returns {Promise<import('./own-server.js').RunningServer & { nodes: import('./own-server.js').OwnServer[] }>}
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
    const cli = binary('redis-cli') ?? binary('valkey-cli') ?? 'redis-cli'
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
 * Nodes talk to each other ten thousand ports higher.
 * @param {number} count
 */
async function clusterPorts(count) {
  const ports = []
  for (let port = 17_000 + Math.floor(Math.random() * 5_000); ports.length < count; port += 1) {
    try {
      ports.push(await freePort(port), await freePort(port + 10_000))
      ports.pop()
    } catch {
      // Somebody else's.
    }
  }
  return ports
}

/**
 * Every master has a replica that follows it, and all nodes agree on who has what.
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
 * A Sentinel that watches one master by itself: it notices within a second that this is gone, and promotes a replica.
 * @param {string} name
 * @param {string} masterUrl
 */
export async function startOwnSentinel(name, masterUrl) {
  const program = foundOrInstalled(WANTED)
  const { hostname, port: master } = new URL(masterUrl)
  return startOwn({
    name: 'sentinel',
    signal: 'KILL',
    crash_: 'KILL',
    url: (own) => `redis://127.0.0.1:${own}`,
    prepare: ({ folder, port, as }) => {
      const file = join(folder, 'sentinel.conf')
      const watch = [`monitor ${name} ${hostname} ${master} 1`, `down-after-milliseconds ${name} 1000`]
      const lines = [`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, ...watch.map((each) => `sentinel ${each}`)]
      writeFileSync(file, `${lines.join('\n')}\nsentinel failover-timeout ${name} 5000\n`)
      // It keeps what it learns in this file.
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
 * Sends one command, over a connection that it does not outlive.
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

/** @param {string} name */
function binary(name) {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}
