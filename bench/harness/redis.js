// @ts-check
/** The benches' Redis server: the one in BELFRY_TEST_REDIS, or else one that the benches start. */
import { createClient } from '@redis/client'
import { startOwnRedis, startRedis } from '../../test/servers/redis.js'

/** @type {Promise<import('../../test/servers/postgres.js').RunningServer> | undefined} */
let server

/** Disables automatic rewriting of the append-only file, which would slow down only one of the turns. */
const OWN = ['--auto-aof-rewrite-percentage', '0']

export async function redisUrl() {
  server ??= process.env.BELFRY_TEST_REDIS ? startRedis() : startOwnRedis(OWN)
  return (await server).url
}

export async function stopRedis() {
  await (await server)?.stop()
}

/** A dedicated connection without a timeout per command, like the one that Belfry opens. */
export async function redisClient() {
  const client = createClient({ url: await redisUrl(), RESP: 2, commandOptions: { timeout: 0 } })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** The server's durability settings. */
export async function redisSettings() {
  const client = await redisClient()
  const settings = await client.configGet(['appendonly', 'appendfsync', 'auto-aof-rewrite-percentage'])
  const version = /redis_version:(\S+)/.exec(String(await client.sendCommand(['INFO', 'server'])))?.[1]
  client.destroy()
  return { version, ...settings }
}

/** The server's used memory in bytes. */
export async function redisMemory() {
  const client = await redisClient()
  const used = /used_memory:(\d+)/.exec(String(await client.sendCommand(['INFO', 'memory'])))?.[1]
  client.destroy()
  return Number(used)
}
