/** A prefix on the shared cluster, with manual clocks. Connections are kept for the next tests. */
import { createCluster } from '@redis/client'
import { afterAll } from 'vitest'
import type { Clock } from '../../src/core/clock.js'
import type { NodeRedisCluster } from '../../src/stores/redis/index.js'
import { serverUrl } from './server-url.js'
import type { Traffic } from './traffic.js'

const freeClients: NodeRedisCluster[] = []
let subscriber: Promise<NodeRedisCluster> | undefined
let made = 0

/** Every command gets its own range of numbers for ids and tokens. This is the size of a range. */
const NUMBERS = 64

export interface TestCluster {
  readonly prefix: string
  /** The connections of one process. Each command sets the clock of its shard to the virtual time first. */
  client(clock: Pick<Clock, 'now'>, traffic: Traffic): Promise<NodeRedisCluster>
  /** Returns the connections for other tests. Close the stores first. */
  close(): void
}

export async function testCluster(): Promise<TestCluster> {
  made += 1
  const prefix = `v${process.pid}.${Date.now().toString(36)}.${made}:`
  const used: NodeRedisCluster[] = []
  let count = 0
  const clockCommand = (key: string, now: number) => {
    count = Math.max(count + NUMBERS, Math.floor(now) * 1_000)
    return ['SET', `${key}told`, `${Math.floor(now)} ${count}`]
  }
  return {
    prefix,
    async client(clock, traffic) {
      const client = freeClients.pop() ?? (await connected())
      used.push(client)
      return virtualTimeCluster(client, traffic, (key) => clockCommand(key, clock.now()))
    },
    close() {
      freeClients.push(...used)
    },
  }
}

function virtualTimeCluster(
  cluster: NodeRedisCluster,
  traffic: Traffic,
  clockCommand: (key: string) => string[],
): NodeRedisCluster {
  const send: NodeRedisCluster['sendCommand'] = (key, isReadonly, args) =>
    traffic.during(async () => {
      const set = key === undefined ? undefined : cluster.sendCommand(key, false, clockCommand(key))
      const [reply] = await Promise.all([cluster.sendCommand(key, isReadonly, args), set])
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
    duplicate: sharedSubscriber,
    subscribe: () => Promise.reject(new Error('only a duplicate subscribes')),
    on: () => {},
    destroy: () => {},
  }
}

/** All subscribers share one cluster client, because connecting takes long. */
function sharedSubscriber(): NodeRedisCluster {
  let ended = false
  const refuse = () => Promise.reject(new Error('this client only subscribes'))
  return {
    isOpen: true,
    masters: [],
    slots: [],
    nodeClient: refuse,
    sendCommand: refuse,
    connect: async () => {},
    duplicate: sharedSubscriber,
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
