/**
 * A prefix of its own on the cluster that the tests share, with clocks that are turned by hand. Connections are kept and
 * used again by the next test.
 */
import { createCluster } from '@redis/client'
import { afterAll } from 'vitest'
import type { Clock } from '../../src/core/clock.js'
import type { NodeRedisCluster } from '../../src/stores/redis/index.js'
import { serverUrl } from './ask.js'
import type { Traffic } from './traffic.js'

const freeClients: NodeRedisCluster[] = []
let subscriber: Promise<NodeRedisCluster> | undefined
let made = 0

/** How many numbers one script may give out before the next one's begin. */
const NUMBERS = 64

export interface TestCluster {
  readonly prefix: string
  /** The connections of one process, by which every command finds its shard's clock where it should be. */
  client(clock: Pick<Clock, 'now'>, traffic: Traffic): Promise<NodeRedisCluster>
  /** Gives the connections back. Close the stores first. */
  close(): void
}

export async function testCluster(): Promise<TestCluster> {
  made += 1
  const prefix = `v${process.pid}.${Date.now().toString(36)}.${made}:`
  const used: NodeRedisCluster[] = []
  let count = 0
  const tell = (key: string, now: number) => {
    count = Math.max(count + NUMBERS, Math.floor(now) * 1_000)
    return ['SET', `${key}told`, `${Math.floor(now)} ${count}`]
  }
  return {
    prefix,
    async client(clock, traffic) {
      const client = freeClients.pop() ?? (await connected())
      used.push(client)
      return timedCluster(client, traffic, (key) => tell(key, clock.now()))
    },
    close() {
      freeClients.push(...used)
    },
  }
}

/** Connecting to a cluster takes long: all who listen share one. */
function timedCluster(cluster: NodeRedisCluster, traffic: Traffic, tell: (key: string) => string[]): NodeRedisCluster {
  const send: NodeRedisCluster['sendCommand'] = (key, isReadonly, args) =>
    traffic.during(async () => {
      const told = key === undefined ? undefined : cluster.sendCommand(key, false, tell(key))
      const [reply] = await Promise.all([cluster.sendCommand(key, isReadonly, args), told])
      return reply
    })
  return {
    isOpen: true,
    get masters() {
      return cluster.masters
    },
    get slots() {
      return cluster.slots
    },
    nodeClient: (node) => cluster.nodeClient(node),
    sendCommand: send,
    connect: async () => {},
    duplicate: () => listening(),
    subscribe: () => Promise.reject(new Error('only a duplicate subscribes')),
    on: () => {},
    destroy: () => {},
  }
}

function listening(): NodeRedisCluster {
  let ended = false
  const refuse = () => Promise.reject(new Error('this one only listens'))
  return {
    isOpen: true,
    masters: [],
    slots: [],
    nodeClient: refuse,
    sendCommand: refuse,
    connect: async () => {},
    duplicate: listening,
    async subscribe(channel, listener) {
      subscriber ??= connected()
      await (await subscriber).subscribe(channel, (message) => {
        if (!ended) listener(message)
      })
    },
    on: () => {},
    destroy() {
      ended = true
    },
  }
}

async function connected(): Promise<NodeRedisCluster> {
  const urls = (await serverUrl('redis-cluster')).split(',')
  const cluster = createCluster({ rootNodes: urls.map((url) => ({ url })), RESP: 2 })
  cluster.on('error', () => {})
  await cluster.connect()
  return cluster as unknown as NodeRedisCluster
}

afterAll(async () => {
  for (const client of freeClients) client.destroy()
  if (subscriber !== undefined) (await subscriber).destroy()
})
