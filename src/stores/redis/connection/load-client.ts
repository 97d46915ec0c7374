/** Creates the store's own clients, for a URL: of `@redis/client` or ioredis, whichever is installed. */

import { installedPackage } from '../../../core/connection/installed-package.js'
import { urlCredentials } from '../../../core/connection/url-credentials.js'
import { failure, quote } from '../../../core/errors.js'
import type { IoRedis, NodeRedis, NodeRedisCluster, RedisClient } from './driver.js'

interface NodeRedisPackage {
  createClient(options: object): NodeRedis
  createCluster(options: object): NodeRedisCluster
}

interface IoRedisPackage {
  readonly Redis: new (...options: readonly [object] | readonly [string, object]) => IoRedis
  readonly Cluster: new (nodes: unknown, options: object) => IoRedis
}

const MAX_WAIT_MS = 1_000

/** The pause before a reconnection: at most about a second. Reconnecting never stops. */
const reconnectMs = (tries: number) => Math.min(50 * 2 ** Math.min(tries, 10), MAX_WAIT_MS) * (0.75 + Math.random() / 2)

// A command that cannot be sent fails at once, so that its caller decides what to do. The client sends no command
// twice.
// `timeout: 0` because the store has its own time limits: an abort signal for each command costs more than the rest of
// sending it.
const NODE_REDIS = {
  RESP: 2,
  disableOfflineQueue: true,
  commandOptions: { timeout: 0 },
  socket: { reconnectStrategy: reconnectMs, keepAlive: true },
}
// In a cluster the client gives up an unreachable node, because a replica may have been promoted: see cluster-link.ts.
const GIVE_UP_AFTER = 5
const NODE = {
  ...NODE_REDIS,
  socket: {
    ...NODE_REDIS.socket,
    reconnectStrategy: (tries: number) =>
      tries < GIVE_UP_AFTER ? reconnectMs(tries) : new Error('this node of the cluster cannot be reached'),
  },
}
// `minimizeConnections` connects to a node when it is first needed, so that an unreachable node does not delay the
// others.
const NODE_REDIS_CLUSTER = {
  RESP: 2,
  minimizeConnections: true,
  topologyRefreshOnReconnectionAttemptStrategy: MAX_WAIT_MS,
}
const IOREDIS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  retryStrategy: reconnectMs,
}

export function clientFor(urls: readonly string[], cluster: boolean): RedisClient {
  if (urls.length === 0) throw failure('OPTION_INVALID', '`nodes` is empty: name at least one node of the cluster')
  for (const each of urls) checkUrl(each, cluster ? 'nodes' : 'url')
  const [url = ''] = urls
  const nodeRedis = installedPackage<NodeRedisPackage>('@redis/client')
  if (nodeRedis !== undefined) {
    if (!cluster) return nodeRedis.createClient({ url, ...NODE_REDIS })
    const rootNodes = urls.map((each) => ({ url: each }))
    // The client learns of further nodes from the cluster, without credentials. So the defaults have them.
    return nodeRedis.createCluster({ rootNodes, ...NODE_REDIS_CLUSTER, defaults: { ...NODE, ...urlCredentials(url) } })
  }
  const ioredis = installedPackage<IoRedisPackage>('ioredis')
  if (ioredis !== undefined) {
    if (!cluster) return new ioredis.Redis(url, IOREDIS)
    return new ioredis.Cluster(urls, { ...IOREDIS, clusterRetryStrategy: reconnectMs, redisOptions: IOREDIS })
  }
  throw failure('UNSUPPORTED', 'the Redis store needs a client for a URL: npm install @redis/client')
}

/**
 * A client as data, for another thread: the URLs of the store's own client, or the options of a client that the user
 * passed in.
 */
export type ClientCopy =
  | { readonly kind: 'urls'; readonly urls: readonly string[]; readonly cluster: boolean }
  | {
      readonly kind: 'node-redis' | 'ioredis'
      readonly cluster: boolean
      readonly options: Readonly<Record<string, unknown>>
      /** The startup nodes, only for a cluster of ioredis. */
      readonly nodes?: unknown
    }

/** Creates a client that reaches the same server as the copied one. */
export function clientLike(copy: ClientCopy): RedisClient {
  if (copy.kind === 'urls') return clientFor(copy.urls, copy.cluster)
  const { cluster, options, nodes } = copy
  if (copy.kind === 'ioredis') {
    const { Redis, Cluster } = installedPackage<IoRedisPackage>('ioredis') as IoRedisPackage
    if (!cluster) return new Redis({ ...options, ...IOREDIS })
    const redisOptions = { ...membersOf(options.redisOptions), ...IOREDIS }
    return new Cluster(nodes, { ...options, ...IOREDIS, clusterRetryStrategy: reconnectMs, redisOptions })
  }
  const { createClient, createCluster } = installedPackage<NodeRedisPackage>('@redis/client') as NodeRedisPackage
  if (!cluster) return createClient(withOurs(options, NODE_REDIS))
  return createCluster({
    ...options,
    ...withoutProtocol(NODE_REDIS_CLUSTER),
    defaults: withOurs(options.defaults, NODE),
  })
}

/**
 * Combines a copied client's options with the connection behaviour of our own clients. The protocol version is the
 * copied client's, because its other options depend on it.
 */
function withOurs(given: unknown, ours: typeof NODE_REDIS | typeof NODE): object {
  const options = membersOf(given)
  return { ...options, ...withoutProtocol(ours), socket: { ...membersOf(options.socket), ...ours.socket } }
}

function withoutProtocol<Options extends { readonly RESP: number }>({ RESP: _, ...rest }: Options) {
  return rest
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
}

const PROTOCOLS = ['redis:', 'rediss:', 'unix:']

function checkUrl(url: unknown, option: string): void {
  const known = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (known !== undefined && PROTOCOLS.includes(known.protocol)) return
  // Shows only the protocol, because the URL may contain a password.
  const shown = known === undefined ? quote(url) : known.protocol
  throw failure(
    'OPTION_INVALID',
    `redis(): ${shown} in \`${option}\` is no URL of a Redis server: write redis://host:6379`,
  )
}
