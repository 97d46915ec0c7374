/**
 * The Redis store: schedules, runs and locks in the Redis or Valkey that the app already has, 6.2 and newer.
 *
 * Every operation is a Lua script, or a few scripts of which each checks that what an earlier one read is still true.
 * The store's time is the server's. What the store guarantees when a server restarts or fails over depends on the
 * server's configuration: see docs/redis.md, which also shows the stored texts.
 */
import { systemClock } from '../../core/clock.js'
import type { Store } from '../../core/store.js'
import { agreeOnShards, CLUSTER_SHARDS, shardKeys } from './cluster/shards.js'
import { checkServer } from './connection/check-server.js'
import type { Subscription } from './connection/driver.js'
import { storeError } from './connection/errors.js'
import { openLink } from './connection/open-link.js'
import { reopen } from './connection/reopen.js'
import { Server } from './connection/server.js'
import { SubscriptionWatch } from './connection/subscription-watch.js'
import { EVERYTHING, type Hint, Wakes } from './connection/wakes.js'
import { type RedisOptions, type RedisTestOptions, readOptions } from './options.js'
import { firstShard } from './schema/keys.js'
import { operationsOn } from './store.js'

export type { IoRedis, NodeRedis, NodeRedisCluster, RedisClient } from './connection/driver.js'
export type { RedisOptions } from './options.js'

export function redis(options: RedisOptions): Store {
  return redisStore(options, {})
}

export function redisStore(options: RedisOptions, { handTurned = false, shifted = false }: RedisTestOptions): Store {
  const settings = readOptions(options)
  const { link, prefix, shards, waitReplicas, timeoutMs, clock } = settings
  const self = globalThis.crypto.randomUUID()
  let channel = `${prefix}wakes`
  const publish = (hint: Hint) =>
    void server.send(firstShard(prefix), ['PUBLISH', channel, JSON.stringify(hint)]).catch(() => {})
  const wakes = new Wakes(clock, (woken) => publish({ from: self, woken }))
  const server = new Server({
    ...{ link, prefix, clock, timeoutMs, waitReplicas, announce: wakes.announce },
    clockKind: handTurned ? 'handTurned' : shifted ? 'shifted' : 'server',
  })
  const warned = new Set<(message: string) => void>()
  let subscription: Subscription | undefined
  const watch = new SubscriptionWatch({
    clock,
    publish: () => publish({ test: true }),
    onSilence: () => void subscription?.renew(),
  })

  function heard(message: string): void {
    watch.heard()
    const hint = JSON.parse(message) as Hint
    if ('holder' in hint) wakes.handedTo(hint.holder)
    else if ('from' in hint && hint.from !== self) wakes.heard(hint.woken)
  }

  return {
    ...operationsOn(server),
    keyPrefix: prefix,
    supports: { transactions: false, wakeups: true, durable: true, shared: true },
    subscribe: wakes.subscribe,
    onWarning(listener) {
      warned.add(listener)
      return () => {
        warned.delete(listener)
      }
    },
    ...(handTurned || shifted || clock !== systemClock
      ? {}
      : { reopen: () => reopen(options, { prefix, shards: server.shards, waitReplicas, timeoutMs }) }),
    async open() {
      if (server.isOpen) return
      await openLink(link, clock, server.limitMs, prefix)
      const warning = await checkServer(server, firstShard(prefix), link.isCluster)
      const agreed = await agreeOnShards(server, shards, link.isCluster ? CLUSTER_SHARDS : 1)
      const keys = shardKeys(prefix, agreed.shards)
      const others = await Promise.all(keys.slice(1).map((key) => checkServer(server, key, link.isCluster)))
      const said = [warning, ...others].find((each) => each !== undefined)
      if (said !== undefined) for (const listener of warned) listener(said)
      channel = agreed.channel
      subscription = await link
        .listen(channel, heard, () => wakes.heard(EVERYTHING))
        .catch((error: unknown) => Promise.reject(storeError(error, prefix)))
      watch.start()
      server.useShards(keys)
      link.unref()
    },
    async close() {
      wakes.close()
      watch.stop()
      subscription?.end()
      server.close()
      link.close()
    },
  }
}
