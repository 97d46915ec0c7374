/**
 * The clients that a user can pass in: `@redis/client` (and the `redis` package around it) and ioredis, single or
 * cluster. Only the methods that the store calls are typed. The rest of the store uses every client through a `Link`.
 */
import type { Clock } from '../../../core/clock.js'
import { failure } from '../../../core/errors.js'
import { ClusterLink } from '../cluster/cluster-link.js'
import type { ClientErrors } from './client-errors.js'
import { ioredisLink } from './ioredis-link.js'
import { nodeRedisLink } from './node-redis-link.js'

/** A client of `@redis/client`. */
export interface NodeRedis {
  readonly isOpen: boolean
  /** False while the client is reconnecting. */
  readonly isReady?: boolean
  sendCommand(args: readonly string[]): Promise<unknown>
  connect(): Promise<unknown>
  duplicate(): NodeRedis
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>
  on(event: 'error' | 'ready', listener: (error: unknown) => void): unknown
  /** Lets the process end while the client is connected, also after each reconnection. */
  unref?(): void
  destroy(): unknown
}

/** A cluster of `@redis/client`. */
export interface NodeRedisCluster {
  readonly isOpen: boolean
  readonly masters: readonly unknown[]
  readonly slots: readonly { readonly master: unknown }[]
  nodeClient(node: unknown): NodeRedis | Promise<NodeRedis>
  sendCommand(key: string | undefined, isReadonly: boolean | undefined, args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  duplicate(): NodeRedisCluster
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>
  on(event: 'error', listener: (error: unknown) => void): unknown
  destroy(): unknown
}

/** A client or a cluster of ioredis. */
export interface IoRedis {
  readonly status: string
  readonly isCluster: boolean
  /** Only a connected client that is not a cluster has it. */
  readonly stream?: { unref?(): void }
  call(command: string, args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  /** Pass `override` only for a single client: a cluster takes other arguments. */
  duplicate(override?: { readonly autoResubscribe: boolean }): IoRedis
  subscribe(channel: string): Promise<unknown>
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
  on(event: 'error' | 'ready', listener: (error: unknown) => void): unknown
  disconnect(reconnect?: boolean): void
}

export type RedisClient = NodeRedis | NodeRedisCluster | IoRedis

/** A subscription to a channel. */
export interface Subscription {
  /** Subscribes over a new connection, because nothing arrives over the current one. */
  renew(): Promise<void>
  end(): void
}

/** How the store reaches its server or servers. All commands go through this interface. */
export interface Link {
  readonly isCluster: boolean
  /** Whether two commands can be sent one after the other over the same connection. */
  readonly keepsOrder: boolean
  /** The errors that the client has emitted. */
  readonly heard: ClientErrors
  open(): Promise<void>
  /**
   * From now on the store's own connection does not keep the process alive, so a script that has finished can end. A
   * command in flight still keeps the process alive, by its timer (`Server`). Clusters cannot do this: they end with
   * `close`.
   */
  unref(): void
  /** Gives up connecting. `open` may be called again. */
  abandon(): void
  /** Sends a command to the server that has the key. */
  send(key: string, args: readonly string[]): Promise<unknown>
  /** Sends two commands to the server that has the key, in this order over the same connection. */
  sendBoth(key: string, first: readonly string[], second: readonly string[]): Promise<readonly [unknown, unknown]>
  /**
   * Reports that a command for this key has timed out, so that the connection may be half-open. `silences` counts such
   * timeouts in a row, without any answer in between.
   */
  doubt(key: string, silences: number): void
  /** Subscribes over a separate connection. Calls `gap` after a reconnection, because messages may have been lost. */
  listen(channel: string, heard: (message: string) => void, gap: () => void): Promise<Subscription>
  close(): void
}

export function linkTo(client: RedisClient, owned: boolean, clock: Clock): Link {
  if ('masters' in client) return new ClusterLink(client, owned, clock)
  if ('call' in client && 'isCluster' in client) return ioredisLink(client, owned)
  if ('sendCommand' in client) return nodeRedisLink(client, owned, clock)
  throw failure('OPTION_INVALID', 'the Redis store needs a client of @redis/client or of ioredis')
}
