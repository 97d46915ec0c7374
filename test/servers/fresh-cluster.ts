import { setTimeout as sleep } from 'node:timers/promises'
import { createCluster } from '@redis/client'
import { afterAll } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { type NodeRedisCluster, redis } from '../../src/stores/redis/index.js'
import { serverUrl } from './ask.js'

let client: NodeRedisCluster | undefined
let made = 0

/** An empty store of its own on the cluster that the tests share. Its time is real. */
export async function freshCluster(): Promise<{ readonly store: Store; elapse(ms: number): Promise<void> }> {
  client ??= await connect()
  made += 1
  const prefix = `c${process.pid}.${Date.now().toString(36)}.${made}:`
  return { store: redis({ client, prefix, shards: 6 }), elapse: (ms) => sleep(ms) }
}

async function connect(): Promise<NodeRedisCluster> {
  const urls = (await serverUrl('redis-cluster')).split(',')
  const cluster = createCluster({ rootNodes: urls.map((url) => ({ url })), RESP: 2 })
  cluster.on('error', () => {})
  await cluster.connect()
  return cluster as unknown as NodeRedisCluster
}

afterAll(() => {
  client?.destroy()
})
