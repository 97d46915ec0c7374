/** Adapts the user's clients (single, cluster or sentinel), and makes clients for URLs. */
import { sleep, systemClock } from '../../core/clock.js'
import { installedPackage } from '../../core/connection/installed-package.js'
import { urlCredentials } from '../../core/connection/url-credentials.js'
import { failure, quote } from '../../core/errors.js'
import type { Send } from './add-entries.js'

/** A client of `@redis/client`. */
export interface NodeRedis {
  readonly isOpen: boolean
  readonly isReady: boolean
  sendCommand(args: readonly string[]): Promise<unknown>
  connect(): Promise<unknown>
  on(event: 'error', listener: (error: unknown) => void): unknown
  destroy(): unknown
}

/** A cluster of `@redis/client`. */
export interface NodeRedisCluster {
  readonly isOpen: boolean
  readonly masters: readonly unknown[]
  sendCommand(key: string | undefined, isReadonly: boolean | undefined, args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  on(event: 'error', listener: (error: unknown) => void): unknown
  destroy(): unknown
}

/** A client of `createSentinel` of `@redis/client`. */
export interface NodeRedisSentinel {
  readonly isOpen: boolean
  readonly isReady: boolean
  getMasterNode(): unknown
  sendCommand(isReadonly: boolean | undefined, args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  on(event: 'error', listener: (error: unknown) => void): unknown
  destroy(): unknown
}

/** A client or a cluster of ioredis. */
export interface IoRedis {
  readonly status: string
  readonly isCluster: boolean
  call(command: string, args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  on(event: 'error', listener: (error: unknown) => void): unknown
  disconnect(): unknown
}

export type RedisClient = NodeRedis | NodeRedisCluster | NodeRedisSentinel | IoRedis

export interface Connected {
  readonly send: Send
  /** Whether the client would send a command now, instead of queueing it. */
  isReady(): boolean
  end(): unknown
}

const CONNECT_MS = 5_000
/** Timeout for connecting, including the first answer. */
const ANSWER_MS = 5_000
/**
 * Options of clients that the sink makes. The link reconnects, so a client itself fails at once: it neither reconnects,
 * queues nor resends.
 */
const NODE_REDIS = {
  RESP: 2,
  disableOfflineQueue: true,
  socket: { reconnectStrategy: false, connectTimeout: CONNECT_MS, keepAlive: true },
  pingInterval: 10_000,
}
const IOREDIS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  retryStrategy: null,
  connectTimeout: CONNECT_MS,
}

/** The prefix that a client of ioredis puts before every key. */
export function keyPrefixOf(client: RedisClient | undefined): string {
  const { options } = (client ?? {}) as { readonly options?: { readonly keyPrefix?: unknown } }
  return typeof options?.keyPrefix === 'string' ? options.keyPrefix : ''
}

/**
 * Clients that have an error listener. Without a listener an error event would end the process; commands report errors
 * anyway.
 */
const listened = new WeakSet<RedisClient>()

/** Connects a client that is not yet connected. */
export async function connected(client: RedisClient): Promise<Connected> {
  if (!listened.has(client)) client.on('error', () => {})
  listened.add(client)
  if ('masters' in client) {
    if (!client.isOpen) await client.connect()
    const send: Send = (key, command) => client.sendCommand(key, false, [...command])
    return { send, isReady: () => true, end: () => end(client) }
  }
  if ('getMasterNode' in client) {
    if (!client.isOpen) await client.connect()
    const send: Send = (_, command) => client.sendCommand(false, [...command])
    return { send, isReady: () => client.isReady, end: () => end(client) }
  }
  if ('call' in client) {
    if (client.status === 'wait' || client.status === 'end') await client.connect()
    const send: Send = (_, [command = '', ...args]) => client.call(command, args)
    return { send, isReady: () => client.status === 'ready', end: () => end(client) }
  }
  if (!client.isOpen) await client.connect()
  return {
    send: (_, command) => client.sendCommand(command),
    isReady: () => client.isReady,
    end: () => end(client),
  }
}

/** Connects a client that the sink made. Ends the client if its server accepts the connection and does not answer. */
export async function connectedInTime(client: RedisClient, timeoutMs = ANSWER_MS): Promise<Connected> {
  try {
    return await inTime(connected(client), timeoutMs)
  } catch (error) {
    end(client)
    throw error
  }
}

/** Rejects when no answer arrives in time. A hanging server keeps its connections open and answers nothing. */
export async function inTime<Answer>(answer: Promise<Answer>, timeoutMs: number): Promise<Answer> {
  const enough = new AbortController()
  const late = sleep(systemClock, timeoutMs, enough.signal).then(() => {
    throw new Error(`it has not answered within ${timeoutMs / 1_000} s`)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    enough.abort()
  }
}

function end(client: RedisClient): void {
  try {
    if ('disconnect' in client && 'call' in client) client.disconnect()
    else client.destroy()
  } catch {
    // The client is already closed.
  }
}

export function isClient(client: unknown): client is RedisClient {
  if (typeof client !== 'object' || client === null) return false
  return 'sendCommand' in client || ('call' in client && 'status' in client)
}

interface NodeRedisPackage {
  createClient(options: object): NodeRedis
  createCluster(options: object): NodeRedisCluster
}

interface IoRedisPackage {
  readonly Redis: new (url: string, options: object) => IoRedis
  readonly Cluster: new (nodes: readonly string[], options: object) => IoRedis
}

/** Makes clients for URLs, with whichever package is installed. */
export function clientMaker(urls: readonly unknown[], isCluster: boolean, where: string): () => RedisClient {
  for (const each of urls) checkUrl(each, where)
  const nodes = urls.map(String)
  const [url = ''] = nodes
  if (url === '') throw failure('OPTION_INVALID', `${where}: nodes is empty; name at least one node of the cluster`)
  const nodeRedis = installedPackage<NodeRedisPackage>('@redis/client')
  if (nodeRedis !== undefined) {
    if (!isCluster) return () => nodeRedis.createClient({ url, ...NODE_REDIS })
    const rootNodes = nodes.map((each) => ({ url: each }))
    // The cluster announces nodes without credentials, so they get those of the URL.
    const defaults = { ...NODE_REDIS, ...urlCredentials(url) }
    return () => nodeRedis.createCluster({ RESP: 2, rootNodes, minimizeConnections: true, defaults })
  }
  const ioredis = installedPackage<IoRedisPackage>('ioredis')
  if (ioredis === undefined) {
    throw failure('UNSUPPORTED', `${where} needs a client for a URL: npm install @redis/client`)
  }
  if (!isCluster) return () => new ioredis.Redis(url, IOREDIS)
  return () => new ioredis.Cluster(nodes, { ...IOREDIS, clusterRetryStrategy: null, redisOptions: IOREDIS })
}

function checkUrl(url: unknown, where: string): void {
  const known = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (known !== undefined && ['redis:', 'rediss:', 'unix:'].includes(known.protocol)) return
  // The message shows only the type or protocol, because the URL may contain a password.
  const shown = known === undefined ? quote(typeof url) : known.protocol
  throw failure('OPTION_INVALID', `${where}: ${shown} is not a URL of a Redis server: write redis://host:6379`)
}
