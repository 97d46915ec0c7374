/** The options of the Redis store, and their checks. */

import { checkOptions } from '../../core/checks/known-options.js'
import { type Clock, systemClock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import { MAX_SHARDS } from './cluster/shards.js'
import { type Link, linkTo, type RedisClient } from './connection/driver.js'
import { clientFor } from './connection/load-client.js'

export interface RedisOptions {
  /** A client or cluster of `@redis/client` or ioredis. It stays yours: closing the store does not close it. */
  readonly client?: RedisClient
  /** The URL of a server, instead of `client`. Needs `@redis/client` or ioredis. */
  readonly url?: string
  /** The URLs of some nodes of a cluster, instead of `client`. Needs `@redis/client` or ioredis. */
  readonly nodes?: readonly string[]
  /** The beginning of all keys. Default `belfry:`. */
  readonly prefix?: string
  /** How many shards a new store has. Default 1, and 12 in a cluster. It cannot be changed later. */
  readonly shards?: number
  /** How many replicas must have each write before it counts. Default 0: writes do not wait for replicas. */
  readonly waitReplicas?: number
  /** How long a command may take before it fails. Default a third of the lease, at most 5 seconds. */
  readonly timeoutMs?: number
  /** The clock for timers. Default the system's. The store's time is always the server's. */
  readonly clock?: Clock
}

/** Options that only tests and benches set. */
export interface RedisTestOptions {
  /** Scripts read the time from the key `clock` instead of from the server. */
  readonly handTurned?: boolean
  /** Scripts add the offset in the key `shift` to the server's time. */
  readonly shifted?: boolean
}

const OPTIONS = ['client', 'url', 'nodes', 'prefix', 'shards', 'waitReplicas', 'timeoutMs', 'clock'] as const

export interface Settings {
  readonly link: Link
  readonly prefix: string
  readonly shards: number | undefined
  readonly waitReplicas: number
  readonly timeoutMs: number | undefined
  readonly clock: Clock
}

export function readOptions(options: RedisOptions): Settings {
  checkOptions(options, OPTIONS, 'redis()')
  const { prefix = 'belfry:', shards, waitReplicas = 0, timeoutMs, clock = systemClock } = options
  checkPrefix(prefix)
  checkShards(shards)
  checkTimeout(timeoutMs)
  const link = linkOf(options, clock)
  checkWaitReplicas(waitReplicas, link)
  return { link, prefix, shards, waitReplicas, timeoutMs, clock }
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

function checkTimeout(timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || (Number.isFinite(timeoutMs) && timeoutMs >= 1)) return
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
