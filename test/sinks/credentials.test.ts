/** Wrong credentials count as an outage: no event fails permanently, and the error tells the operator the reason. */
import { connect as connectToNats } from '@nats-io/transport-node'
import { describe, expect, it } from 'vitest'
import type { Sink } from '../../src/core/sink.js'
import { nats } from '../../src/sinks/nats/index.js'
import { rabbitmq } from '../../src/sinks/rabbitmq/index.js'
import { redisStream } from '../../src/sinks/redis-stream/index.js'
import { startOwnNats } from '../servers/nats.js'
import type { OwnServer } from '../servers/postgres.js'
import { startOwnRabbitMq } from '../servers/rabbitmq.js'
import { startOwnRedis } from '../servers/redis.js'
import { scene, soon, yes } from './deliveries.js'

const PASSWORD = 'right-secret'

async function refusal(sink: Sink): Promise<unknown> {
  const [outcome] = await sink.deliver(scene.messages(1), soon())
  await sink.close?.()
  expect(outcome).toMatchObject({ delivered: false, unreachable: true, error: { code: 'SINK_UNREACHABLE' } })
  expect(JSON.stringify(outcome)).not.toContain('wrong-secret')
  return String((outcome as { readonly error?: unknown }).error)
}

async function withServer(started: Promise<OwnServer>, work: (url: string) => Promise<void>): Promise<void> {
  const server = await started
  try {
    await work(server.url)
  } finally {
    await server.stop()
  }
}

describe('wrong credentials are an outage with its reason', () => {
  it('of NATS', async () => {
    await withServer(startOwnNats({ password: PASSWORD }), async (servers) => {
      const as = (pass: string) => ({ subject: 'events.here', servers, client: { user: 'belfry', pass } })
      expect(await refusal(nats(as('wrong-secret')))).toMatch(/Authorization Violation/i)
      const connection = await connectToNats({ servers, user: 'belfry', pass: PASSWORD })
      const { jetstreamManager } = await import('@nats-io/jetstream')
      await (await jetstreamManager(connection)).streams.add({ name: 'events', subjects: ['events.>'] })
      await connection.close()
      const sink = nats(as(PASSWORD))
      expect(await sink.deliver(scene.messages(1), soon())).toEqual([yes])
      await sink.close?.()
    })
  })

  it('of RabbitMQ', async () => {
    await withServer(startOwnRabbitMq(), async (url) => {
      const wrong = Object.assign(new URL(url), { password: 'wrong-secret' }).href
      expect(await refusal(rabbitmq({ url: [wrong], queue: 'events' }))).toMatch(/ACCESS_REFUSED|ACCESS-REFUSED/)
    })
  }, 60_000)

  it('of Redis', async () => {
    await withServer(startOwnRedis([], { password: PASSWORD }), async (url) => {
      const wrong = Object.assign(new URL(url), { password: 'wrong-secret' }).href
      expect(await refusal(redisStream({ url: wrong, stream: 'events' }))).toMatch(/WRONGPASS/)
      const sink = redisStream({ url, stream: 'events' })
      expect(await sink.deliver(scene.messages(1), soon())).toEqual([yes])
      await sink.close?.()
    })
  })
})
