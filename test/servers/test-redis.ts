/** A prefix on the shared server, with a manual clock. Connections are kept for the next tests. */
import { createClient } from '@redis/client'
import { afterAll } from 'vitest'
import type { Clock } from '../../src/core/clock.js'
import type { NodeRedis } from '../../src/stores/redis/index.js'
import { serverUrl } from './server-url.js'
import { Traffic } from './traffic.js'

export interface TestRedis {
  readonly prefix: string
  readonly url: string
  /** The connection of one process. */
  client(): Promise<NodeRedis>
  setClock(now: number): Promise<unknown>
  /** Removes the keys, and returns the connections for other tests. Close the stores first. */
  close(): Promise<void>
}

const freeClients: NodeRedis[] = []
let made = 0

export async function testRedis(): Promise<TestRedis> {
  const url = await serverUrl('redis')
  made += 1
  const prefix = `t${process.pid}.${Date.now().toString(36)}.${made}:`
  const used: NodeRedis[] = []
  const admin = freeClients.pop() ?? (await newClient(url))
  used.push(admin)
  return {
    prefix,
    url,
    async client() {
      const client = freeClients.pop() ?? (await newClient(url))
      used.push(client)
      return client
    },
    setClock: (now) => admin.sendCommand(['SET', `${prefix}{0}:clock`, String(Math.floor(now * 1_000))]),
    async close() {
      await admin.sendCommand(['EVAL', CLEAR, '0', `${prefix}*`])
      freeClients.push(...used)
    },
  }
}

/** Deletes all keys of a prefix. Only tests scan for keys; a store never does. */
const CLEAR = `local cursor = '0'
repeat
  local found = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 1000)
  cursor = found[1]
  if #found[2] > 0 then redis.call('DEL', unpack(found[2])) end
until cursor == '0'`

async function newClient(url: string): Promise<NodeRedis> {
  const client = createClient({ url, RESP: 2 })
  client.on('error', () => {})
  await client.connect()
  return client as unknown as NodeRedis
}

/** Returns a function that sets the store's clock to the virtual time, unless it shows that already. */
export function clockSync(clock: Clock, redis: TestRedis): () => Promise<unknown> {
  let sent: number | undefined
  let sending: Promise<unknown> = Promise.resolve()
  return () => {
    if (sent !== clock.now()) {
      sent = clock.now()
      sending = redis.setClock(sent)
    }
    return sending
  }
}

/** A client that sets the store's clock to the virtual time before each command. */
export function virtualTimeClient(
  client: NodeRedis,
  syncClock: () => Promise<unknown>,
  traffic = new Traffic(),
): NodeRedis {
  return {
    isOpen: true,
    sendCommand: (args) => traffic.during(() => syncClock().then(() => client.sendCommand(args))),
    connect: async () => {},
    duplicate: () => client.duplicate(),
    subscribe: () => Promise.reject(new Error('only a duplicate subscribes')),
    on: () => {},
    destroy: () => {},
  }
}

afterAll(() => {
  for (const client of freeClients) client.destroy()
})
