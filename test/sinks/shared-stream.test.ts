/**
 * Two Belfry stores with a schedule of the same name send to one stream: brokers that drop repeats must not confuse
 * their events.
 */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createBelfry } from '../../src/belfry.js'
import { nats } from '../../src/sinks/nats/index.js'
import { redisStream } from '../../src/sinks/redis-stream/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { startOwnNats } from '../servers/nats.js'
import type { OwnServer } from '../servers/postgres.js'
import { startOwnRedis, tellRedis } from '../servers/redis.js'

let servers: { readonly nats: OwnServer; readonly redis: OwnServer }

beforeAll(async () => {
  servers = { nats: await startOwnNats(), redis: await startOwnRedis() }
})
afterAll(() => Promise.all(Object.values(servers ?? {}).map((server) => server.stop())))

it('events of both stores arrive, on NATS and on Redis Streams', async () => {
  const connection = await connect({ servers: servers.nats.url })
  const { streams } = await jetstreamManager(connection)
  await streams.add({ name: 'events', subjects: ['events.>'] })
  const arrivedOnNats = async () => (await streams.info('events')).state.messages
  const soonAt = Math.ceil(Date.now() / 1_000) * 1_000 + 1_000
  const at = [0, 1, 2].map((second) => new Date(soonAt + second * 1_000))
  const belfrys = [1, 2].map((payload) => {
    const sinks = {
      subject: nats({ subject: 'events.here', servers: servers.nats.url }),
      stream: redisStream({ url: servers.redis.url, stream: 'events' }),
    }
    const belfry = createBelfry({ store: memory(), sinks })
    belfry.schedule('report/nats', { at, to: 'subject', payload })
    belfry.schedule('report/redis', { at, to: 'stream', payload })
    return belfry
  })
  await Promise.all(belfrys.map((belfry) => belfry.start()))
  await expect.poll(() => tellRedis(servers.redis.url, 'XLEN', 'events'), { timeout: 20_000 }).toBe(6)
  await expect.poll(arrivedOnNats, { timeout: 20_000 }).toBe(6)
  const entries = (await tellRedis(servers.redis.url, 'XRANGE', 'events', '-', '+')) as [string, string[]][]
  const bodies = entries.map(([, fields]) => JSON.parse(fields[5] ?? '') as { id: string; payload: number })
  const ids = at.map((instant) => `report/redis-${instant.getTime() / 1_000}`)
  for (const payload of [1, 2]) {
    expect(bodies.filter((body) => body.payload === payload).map(({ id }) => id)).toEqual(ids)
  }
  await Promise.all(belfrys.map((belfry) => belfry.stop()))
  await connection.close()
}, 60_000)
