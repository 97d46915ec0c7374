// @ts-check
/** The Redis that benches share: the tests' own way of finding or starting one. */
import { createClient } from '@redis/client'
import { startOwnRedis, startRedis } from '../../test/servers/redis.js'

/** @type {Promise<import('../../test/servers/postgres.js').RunningServer> | undefined} */
let server

/** Its log is not rewritten meanwhile: that would fall into one turn and not into the other. */
const OWN = ['--auto-aof-rewrite-percentage', '0']

export async function redisUrl() {
  server ??= process.env.BELFRY_TEST_REDIS ? startRedis() : startOwnRedis(OWN)
  return (await server).url
}

export async function stopRedis() {
  await (await server)?.stop()
}

/** A connection of its own, without a timer for every command, as Belfry's own. */
export async function redisClient() {
  const client = createClient({ url: await redisUrl(), RESP: 2, commandOptions: { timeout: 0 } })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** What the server does for durability, as it says itself. */
export async function redisSettings() {
  const client = await redisClient()
  const settings = await client.configGet(['appendonly', 'appendfsync', 'auto-aof-rewrite-percentage'])
  const version = /redis_version:(\S+)/.exec(String(await client.sendCommand(['INFO', 'server'])))?.[1]
  client.destroy()
  return { version, ...settings }
}

/** How much memory the server uses for data. */
export async function redisMemory() {
  const client = await redisClient()
  const used = /used_memory:(\d+)/.exec(String(await client.sendCommand(['INFO', 'memory'])))?.[1]
  client.destroy()
  return Number(used)
}
