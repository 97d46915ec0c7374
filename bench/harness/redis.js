// @ts-check
/** The Redis that benches share: the tests' own way of finding or starting one. */
import { createClient } from '@redis/client'
import { startRedis } from '../../test/servers/redis.js'

/** @type {Promise<import('../../test/servers/postgres.js').RunningServer> | undefined} */
let server

export async function redisUrl() {
  server ??= startRedis()
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
  const settings = await client.configGet(['appendonly', 'appendfsync'])
  const version = /redis_version:(\S+)/.exec(String(await client.sendCommand(['INFO', 'server'])))?.[1]
  client.destroy()
  return { version, ...settings }
}
