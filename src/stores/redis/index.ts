/**
 * The Redis store: schedules, runs and locks in the Redis or Valkey that the app already has, 6.2 and newer.
 *
 * Every operation is a Lua script, or a few that check on each other; time is the server's. What that promises when a
 * server restarts or fails over depends on how it is set up: see docs/redis.md.
 */
import { type Clock, systemClock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import { checkOptions } from '../../core/known-options.js'
import type { Store } from '../../core/store.js'
import { deliverTickets } from './cluster/deliver-tickets.js'
import { agreeOnShards, CLUSTER_SHARDS, firstShard, MAX_SHARDS, shardKeys, wakesChannel } from './cluster/shards.js'
import { checkServer } from './connection/check-server.js'
import { type Ear, type Link, linkTo, type RedisClient } from './connection/driver.js'
import { storeError } from './connection/errors.js'
import { clientFor } from './connection/load-client.js'
import { openLink } from './connection/open-link.js'
import { reopen } from './connection/reopen.js'
import { Server } from './connection/server.js'
import { EarWatch } from './connection/subscription-watch.js'
import { EVERYTHING, Wakes } from './connection/wakes.js'
import { fromWord } from './schema/words.js'
import { operationsOn } from './store.js'

export type { IoRedis, NodeRedis, NodeRedisCluster, RedisClient } from './connection/driver.js'

export interface RedisOptions {
  /** A client or cluster of `@redis/client` or ioredis. It stays yours: closing the store does not end it. */
  readonly client?: RedisClient
  /** Instead of a client: where the server is. Needs `@redis/client` or ioredis. */
  readonly url?: string
  /** Instead of a client: where some nodes of a cluster are. Needs `@redis/client` or ioredis. */
  readonly nodes?: readonly string[]
  /** What all keys begin with. */
  readonly prefix?: string
  /** Into how many parts a new store is divided: 1 by default, and 12 in a cluster. It cannot be changed later. */
  readonly shards?: number
  /** How many replicas must have each write before it counts: 0, which does not wait, by default. */
  readonly waitReplicas?: number
  /** After how long without an answer the server counts as gone: 5 seconds by default. */
  readonly timeoutMs?: number
  /** For timers; the system's by default. The store's time is the server's. */
  readonly clock?: Clock
}

/** What only tests and benches set. */
export interface RedisTestOptions {
  /** Time is read from the key `clock` instead of from the server. */
  readonly handTurned?: boolean
  /** The key `shift` is added to the server's time. */
  readonly shifted?: boolean
}

export function redis(options: RedisOptions): Store {
  return redisStore(options, {})
}

/** Said only to be heard. Releases before take it for a lock that was handed to a holder whom they do not know. */
const SPOKEN = '0 %00'

const OPTIONS = ['client', 'url', 'nodes', 'prefix', 'shards', 'waitReplicas', 'timeoutMs', 'clock'] as const

export function redisStore(options: RedisOptions, { handTurned = false, shifted = false }: RedisTestOptions): Store {
  checkOptions(options, OPTIONS, 'redis()')
  const { prefix = 'belfry:', shards, waitReplicas = 0, timeoutMs = 5_000, clock = systemClock } = options
  checkPrefix(prefix)
  checkShards(shards)
  checkTimeout(timeoutMs)
  const link = linkOf(options, clock)
  checkWaitReplicas(waitReplicas, link)
  const self = globalThis.crypto.randomUUID()
  let channel = `${prefix}wakes`
  const publish = (bits: number) =>
    void server.send(firstShard(prefix), ['PUBLISH', channel, `${self} ${bits}`]).catch(() => {})
  const wakes = new Wakes(clock, publish)
  const server: Server = new Server({
    ...{ link, prefix, clock, timeoutMs, waitReplicas, announce: wakes.announce },
    clockKind: handTurned ? 'handTurned' : shifted ? 'shifted' : 'server',
    deliver: (shard) => deliverTickets(server, shard),
  })
  let ear: Ear | undefined
  const earWatch = new EarWatch({
    clock,
    speak: () => void server.send(firstShard(prefix), ['PUBLISH', channel, `${self} ${SPOKEN}`]).catch(() => {}),
    onDeaf: () => ear?.renew(),
  })

  function heard(message: string): void {
    earWatch.heard()
    const [from, bits, holder] = message.split(' ')
    if (message.endsWith(SPOKEN)) return
    if (holder !== undefined) wakes.handedTo(fromWord(holder) ?? '')
    else if (from !== self) wakes.heard(Number(bits) || EVERYTHING)
  }

  return {
    ...operationsOn(server),
    supports: { transactions: false, wakeups: true, durable: true, shared: true },
    subscribe: wakes.subscribe,
    ...(handTurned || shifted || clock !== systemClock
      ? {}
      : { reopen: () => reopen(options, { prefix, shards: server.shards, waitReplicas, timeoutMs }) }),
    async open() {
      if (server.isOpen) return
      await openLink(link, clock, timeoutMs, prefix)
      await checkServer(server, firstShard(prefix), link.isCluster)
      const keys = shardKeys(prefix, await agreeOnShards(server, shards, link.isCluster ? CLUSTER_SHARDS : 1))
      await Promise.all(keys.slice(1).map((key) => checkServer(server, key, link.isCluster)))
      channel = await wakesChannel(server)
      ear = await link
        .listen(channel, heard, () => wakes.heard(EVERYTHING))
        .catch((error: unknown) => Promise.reject(storeError(error, prefix)))
      earWatch.start()
      server.useShards(keys)
      link.unref()
    },
    async close() {
      wakes.close()
      earWatch.stop()
      ear?.end()
      server.close()
      link.close()
    },
  }
}

function linkOf({ client, url, nodes }: RedisOptions, clock: Clock): Link {
  const given = [client, url, nodes].filter((each) => each !== undefined)
  if (given.length !== 1) {
    throw failure('OPTION_INVALID', 'the Redis store needs one of `client`, `url` and `nodes`')
  }
  if (client !== undefined) return linkTo(client, false, clock)
  return linkTo(clientFor(nodes ?? [url ?? ''], nodes !== undefined), true, clock)
}

function checkPrefix(prefix: string): void {
  if (/^[\w:./-]{1,100}$/.test(prefix)) return
  throw failure(
    'OPTION_INVALID',
    `the Redis prefix ${JSON.stringify(prefix)} is not usable: 1 to 100 letters, digits and : . / _ -`,
  )
}

function checkShards(shards: number | undefined): void {
  if (shards === undefined || (Number.isInteger(shards) && shards >= 1 && shards <= MAX_SHARDS)) return
  throw failure('OPTION_INVALID', `shards is ${shards}; it must be a whole number from 1 to ${MAX_SHARDS}`)
}

function checkTimeout(timeoutMs: number): void {
  if (Number.isFinite(timeoutMs) && timeoutMs >= 1) return
  throw failure('OPTION_INVALID', `timeoutMs is ${timeoutMs}; it must be a number of milliseconds, 1 or more`)
}

function checkWaitReplicas(waitReplicas: number, link: Link): void {
  if (!Number.isInteger(waitReplicas) || waitReplicas < 0) {
    throw failure('OPTION_INVALID', `waitReplicas is ${waitReplicas}; it must be a whole number, 0 or more`)
  }
  if (waitReplicas === 0 || link.keepsOrder) return
  throw failure(
    'UNSUPPORTED',
    'waitReplicas needs to know the connection that a write went over, which a cluster of ioredis does not tell: use @redis/client',
  )
}
