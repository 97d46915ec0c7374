/**
 * The clients that can be brought along: `@redis/client` (and the `redis` package around it) and ioredis, single or
 * cluster. Only the few calls that are made are typed, and everything else sees them as a `Link`.
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
  /** False while it looks for its server. */
  readonly isReady?: boolean
  sendCommand(args: readonly string[]): Promise<unknown>
  connect(): Promise<unknown>
  duplicate(): NodeRedis
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>
  on(event: 'error' | 'ready', listener: (error: unknown) => void): unknown
  /** Lets the process end although it is connected, then and after every reconnection. */
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
  /** Of one that is connected, and no cluster. */
  readonly stream?: { unref?(): void }
  call(command: string, args: string[]): Promise<unknown>
  connect(): Promise<unknown>
  /** A cluster takes no such options. */
  duplicate(override?: { readonly autoResubscribe: boolean }): IoRedis
  subscribe(channel: string): Promise<unknown>
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
  on(event: 'error' | 'ready', listener: (error: unknown) => void): unknown
  disconnect(reconnect?: boolean): void
}

export type RedisClient = NodeRedis | NodeRedisCluster | IoRedis

/** What listens to a channel. */
export interface Subscription {
  /** Tries to listen over a new connection: nothing arrives over this one any more. */
  renew(): Promise<void>
  end(): void
}

/** The one way in which the store reaches its server, or servers. */
export interface Link {
  readonly isCluster: boolean
  /** Whether a command can be made to follow another on the same connection. */
  readonly keepsOrder: boolean
  /** What the client last said of its connections. */
  readonly heard: ClientErrors
  open(): Promise<void>
  /**
   * From now on a connection of our own keeps no process alive: a script that is done may end. What waits for an answer
   * keeps it alive, by its timer (`Server`). Clusters have no such way, and end with `close`.
   */
  unref(): void
  /** Gives up opening: it may be tried again. */
  abandon(): void
  /** Sends a command to the server that has the key. */
  send(key: string, args: readonly string[]): Promise<unknown>
  /** Sends two commands to the server that has the key, one behind the other on the same connection. */
  sendBoth(key: string, first: readonly string[], second: readonly string[]): Promise<readonly [unknown, unknown]>
  /**
   * A command for this key was not answered in time, and no other since so many such waits: the connection may be
   * half-open.
   */
  doubt(key: string, silences: number): void
  /** Listens on a connection of its own; `gap` is called when it was lost in between. */
  listen(channel: string, heard: (message: string) => void, gap: () => void): Promise<Subscription>
  close(): void
}

export function linkTo(client: RedisClient, owned: boolean, clock: Clock): Link {
  if ('masters' in client) return new ClusterLink(client, owned, clock)
  if ('call' in client && 'isCluster' in client) return ioredisLink(client, owned)
  if ('sendCommand' in client) return nodeRedisLink(client, owned, clock)
  throw failure('OPTION_INVALID', 'the Redis store needs a client of @redis/client or of ioredis')
}
