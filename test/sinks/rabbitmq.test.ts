import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { connect } from 'amqplib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AmqpChannel, type AmqpConnection, rabbitmq } from '../../src/sinks/rabbitmq/index.js'
import { type ReceivedMessage, SinkScene, sinkContract } from '../../src/testing/sink-contract.js'
import { type OutageProxy, outageProxy } from '../servers/outage-proxy.js'
import type { OwnServer } from '../servers/postgres.js'
import { MAX_MESSAGE_BYTES, startOwnRabbitMq } from '../servers/rabbitmq.js'
import { refused, runAnsweredInPart, scene, soon, yes } from './deliveries.js'
import { killPublisher } from './killed-publisher.js'

let [server, proxy]: [OwnServer | undefined, OutageProxy | undefined] = [undefined, undefined]
const direct = () => server?.url ?? ''
const throughProxy = () => Object.assign(new URL(direct()), { port: proxy?.port }).href

beforeAll(async () => {
  server = await startOwnRabbitMq()
  proxy = await outageProxy(() => Number(new URL(direct()).port))
  // Declared long before the test that kills the broker: it may lose a durable queue that is only seconds old.
  await withChannel((channel) => channel.assertQueue('restarted', { durable: true }))
}, 60_000)

afterAll(async () => {
  await proxy?.cut()
  await server?.stop()
})

async function withChannel<Answer>(work: (channel: Channel) => Promise<Answer>): Promise<Answer> {
  const connection = await connect(direct())
  try {
    return await work(await connection.createChannel())
  } finally {
    await connection.close()
  }
}

type Channel = Awaited<ReturnType<Awaited<ReturnType<typeof connect>>['createChannel']>>

/** All messages of a queue, oldest first, left in the queue. */
function arrivedIn(queue: string): Promise<ReceivedMessage[]> {
  return withChannel(async (channel) => {
    const messages: ReceivedMessage[] = []
    for (let message = await channel.get(queue); message !== false; message = await channel.get(queue)) {
      const headers = message.properties.headers ?? {}
      const [attempt, token] = [Number(headers['belfry-attempt']), Number(headers['belfry-token'])]
      messages.push({ ...JSON.parse(message.content.toString()), attempt, token })
    }
    channel.nackAll()
    return messages
  })
}

/** A broker that can report itself as blocked, and can withhold its confirmations. */
class FakeBroker extends EventEmitter {
  confirms = true
  closes = true
  connections = 0
  published = 0
  destroyed = 0

  connect(): AmqpConnection {
    this.connections += 1
    const channel: AmqpChannel = {
      publish: (_, __, ___, ____, confirmed) => {
        this.published += 1
        if (this.confirms) confirmed(null)
        return true
      },
      on: () => {},
      close: async () => {},
    }
    return {
      createConfirmChannel: async () => channel,
      on: (event, listener) => this.on(event, listener),
      close: () => (this.closes ? Promise.resolve() : new Promise(() => {})),
      connection: { stream: { destroy: () => (this.destroyed += 1) } },
    }
  }
}

/** A connection that does not send the next message, so that the broker never confirms it. */
async function connectLeavingOut(left: { isNext: boolean; count: number }): Promise<AmqpConnection> {
  const connection = await connect(direct())
  const createConfirmChannel = async () => {
    const channel = await connection.createConfirmChannel()
    const publish = channel.publish.bind(channel)
    channel.publish = (...message) => {
      if (!left.isNext) return publish(...message)
      left.isNext = false
      left.count += 1
      return true
    }
    return channel
  }
  return Object.assign(Object.create(connection), { createConfirmChannel })
}

/** Permits a schedule to set every option of its messages. */
const ANY = { exchange: true, routingKey: true, queue: true, headers: true, key: true }

sinkContract({
  name: 'rabbitmq',
  open: async () => {
    await withChannel(async (channel) => {
      await channel.assertQueue('events', { durable: true })
      await channel.assertExchange('other', 'topic', { durable: true })
      await channel.assertQueue('elsewhere', { durable: true })
      await channel.bindQueue('elsewhere', 'other', 'orders.#')
    })
    return {
      sink: rabbitmq({ url: throughProxy(), queue: 'events', overrides: ANY }),
      received: () => arrivedIn('events'),
      down: async () => proxy?.cut(),
      up: async () => proxy?.restore(),
      elsewhere: {
        options: { exchange: 'other', routingKey: 'orders.new', headers: { tenant: 'one' } },
        arrived: () => arrivedIn('elsewhere'),
      },
      badOptions: [{ exchange: '' }, { queue: 'x'.repeat(256) }, { key: 'a' }, { headers: { 'belfry-token': '1' } }],
      tooLarge: 'x'.repeat(MAX_MESSAGE_BYTES),
    }
  },
})

describe('the RabbitMQ sink', () => {
  it('sends persistent messages with an id, a type and headers', async () => {
    await withChannel((channel) => channel.assertQueue('typed', { durable: true }))
    const sink = rabbitmq({ url: direct(), queue: 'typed', headers: { team: 'shop' }, format: 'cloudevents' })
    const message = scene.message()
    expect(await sink.deliver([message], soon())).toEqual([yes])
    await sink.close?.()
    const got = await withChannel((channel) => channel.get('typed', { noAck: true }))
    expect(got ? got.properties : undefined).toMatchObject({
      deliveryMode: 2,
      messageId: message.id,
      contentType: 'application/cloudevents+json; charset=utf-8',
      headers: { team: 'shop', 'belfry-attempt': '1' },
    })
  })

  it('retries messages that are not routed to any queue', async () => {
    const options = { exchange: 'other', routingKey: 'nobody' }
    const sink = rabbitmq({ url: direct(), queue: 'events', overrides: ANY })
    const outcomes = await sink.deliver([scene.message(), scene.message({ options })], soon())
    expect(outcomes).toMatchObject([yes, { delivered: false, error: { code: 'SINK_REFUSED' } }])
    expect(outcomes[1]).not.toHaveProperty('retryable')
    expect(String((outcomes[1] as { error?: unknown }).error)).toMatch(/no queue gets messages for "nobody"/)
    await withChannel((channel) => channel.bindQueue('elsewhere', 'other', 'nobody'))
    expect(await sink.deliver([scene.message({ options })], soon())).toEqual([yes])
    await sink.close?.()
  })

  it('permanently fails messages for a missing exchange, and no others', async () => {
    const sink = rabbitmq({ url: direct(), queue: 'events', overrides: ANY })
    const options = { exchange: 'nowhere' }
    const messages = [scene.message(), scene.message({ options }), scene.message(), scene.message({ options })]
    const outcomes = await sink.deliver(messages, soon())
    expect(outcomes).toMatchObject([yes, refused, yes, refused])
    const [tooLong] = await sink.deliver([scene.message({ options, key: 'ü'.repeat(200) })], soon())
    expect(tooLong).toMatchObject({ retryable: false, error: { message: /routes by.*255 bytes/ } })
    await withChannel((channel) => channel.assertExchange('nowhere', 'fanout'))
    await withChannel((channel) => channel.bindQueue('elsewhere', 'nowhere', ''))
    expect(await sink.deliver([scene.message({ options })], soon())).toEqual([yes])
    await sink.close?.()
  })

  it('does not fail a message because another call’s message is too large', async () => {
    const sink = rabbitmq({ url: direct(), queue: 'events' })
    const large = Array.from({ length: 3 }, () => [scene.message({ payload: 'x'.repeat(MAX_MESSAGE_BYTES) })])
    const small = Array.from({ length: 20 }, () => [scene.message()])
    const answers = await Promise.all([...large, ...small].map((messages) => sink.deliver(messages, soon())))
    await sink.close?.()
    expect(answers.flat()).toMatchObject([...large.map(() => refused), ...small.map(() => yes)])
  })

  it('sends the neighbours of a too large message once more, together, and the large one not again', async () => {
    const sink = rabbitmq({ url: direct(), queue: 'events' })
    const large = () => scene.message({ payload: 'x'.repeat(MAX_MESSAGE_BYTES) })
    const messages = [...scene.messages(200), large(), ...scene.messages(200)]
    const startedAt = performance.now()
    const outcomes = await sink.deliver(messages, soon())
    expect(outcomes.filter(({ delivered }) => !delivered)).toMatchObject([refused])
    const tookMs = performance.now() - startedAt
    const again = await sink.deliver([...scene.messages(1), large()], soon())
    expect(again).toMatchObject([yes, { ...refused, error: { message: /accepts messages of at most 200000 bytes/ } }])
    await sink.close?.()
    // 400 neighbours sent one by one, each over its own channel, would take many times as long.
    expect(tookMs).toBeLessThan(10_000)
  })

  it('counts as delivered only the messages that the broker confirmed', async () => {
    await withChannel((channel) => channel.assertQueue('part', { durable: true }))
    const left = { isNext: false, count: 0 }
    const sink = rabbitmq({ connect: () => connectLeavingOut(left), queue: 'part' })
    const answerInPart = async () => {
      left.isNext = true
      return { leftOut: () => left.count }
    }
    await runAnsweredInPart({ sink, received: () => arrivedIn('part'), answerInPart })
    await sink.close?.()
  })

  it('retries messages that a full queue refuses', async () => {
    const full = { 'x-max-length': 1, 'x-overflow': 'reject-publish' }
    await withChannel((channel) => channel.assertQueue('full', { durable: true, arguments: full }))
    const sink = rabbitmq({ connect: () => connect(direct()), queue: 'full' })
    await sink.deliver(scene.messages(1), soon())
    const outcomes = await sink.deliver(scene.messages(1), soon())
    await sink.close?.()
    expect(outcomes).toMatchObject([{ delivered: false, error: { code: 'SINK_REFUSED' } }])
    expect(outcomes[0]).not.toHaveProperty('retryable')
  })

  it('reports an outage for a full queue only while no other queue accepts messages', async () => {
    const full = { 'x-max-length': 1, 'x-overflow': 'reject-publish' }
    await withChannel((channel) => channel.assertQueue('fuller', { durable: true, arguments: full }))
    const sink = rabbitmq({ url: direct(), queue: 'fuller', overrides: { queue: ['typed'] } })
    await sink.deliver(scene.messages(1), soon())
    const alone = await sink.deliver(scene.messages(1), soon())
    expect(alone).toMatchObject([{ delivered: false, unreachable: true, error: { message: /queue "fuller"/ } }])
    await sink.deliver([scene.message({ options: { queue: 'typed' } })], soon())
    const [beside] = await sink.deliver(scene.messages(1), soon())
    await sink.close?.()
    expect(beside).toMatchObject({ delivered: false })
    expect(beside).not.toHaveProperty('unreachable')
  })

  it('connects to the next node of a cluster when one refuses connections or hangs', async () => {
    const closedProxy = await outageProxy(() => 0)
    await closedProxy.cut()
    const closed = closedProxy.port
    const mute = createServer(() => {}).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const at = (port: number) => Object.assign(new URL(direct()), { port: String(port) }).href
    const url = [at(closed), at((mute.address() as AddressInfo).port), direct()]
    const sink = rabbitmq({ url, queue: 'events' })
    expect(await sink.deliver(scene.messages(1), soon())).toEqual([yes])
    await sink.close?.()
    mute.close()
    const nowhere = rabbitmq({ url: [at(closed)], queue: 'events' })
    const error = { message: expect.stringContaining(`127.0.0.1:${closed}: `) }
    expect(await nowhere.deliver(scene.messages(1), soon())).toMatchObject([{ unreachable: true, error }])
    expect(() => rabbitmq({ url: [], queue: 'events' })).toThrow(/empty list/)
  })

  it('keeps one connection while the broker is blocked, and publishes nothing on it', async () => {
    const broker = new FakeBroker()
    const sink = rabbitmq({ connect: async () => broker.connect(), queue: 'events' })
    broker.confirms = false
    const held = sink.deliver(scene.messages(3), soon())
    await expect.poll(() => broker.published).toBe(3)
    broker.emit('blocked', 'low on memory')
    const blocked = { delivered: false, unreachable: true, error: { message: /blocks publishers.*low on memory/ } }
    expect(await held).toMatchObject([blocked, blocked, blocked])
    for (let probe = 0; probe < 5; probe += 1)
      expect(await sink.deliver(scene.messages(1), soon())).toMatchObject([blocked])
    expect([broker.connections, broker.published]).toEqual([1, 3])
    broker.confirms = true
    broker.emit('unblocked', undefined)
    expect(await sink.deliver(scene.messages(1), soon())).toEqual([yes])
    broker.closes = false
    await sink.close?.()
    expect(broker.destroyed).toBe(1)
  })

  it('refuses invalid options', () => {
    const url = 'amqp://localhost'
    const queue = 'events'
    for (const options of [{ url }, { queue }, { url, queue, exchange: 'a' }, { url: 'http://localhost', queue }]) {
      expect(() => rabbitmq(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
    expect(() => rabbitmq({ url: 'amqp//user:secret@host', queue })).not.toThrow(/secret/)
  })

  it('loses nothing when the publishing process is killed in the middle of a batch', async () => {
    await withChannel((channel) => channel.assertQueue('killed', { durable: true }))
    const options = { url: direct(), queue: 'killed' }
    await killPublisher({ sink: 'rabbitmq/index.js', make: 'rabbitmq', options, arrived: () => arrivedIn('killed') })
  }, 60_000)

  it('loses nothing when the broker is killed and restarted', async () => {
    const sink = rabbitmq({ url: direct(), queue: 'restarted' })
    const [before, during] = [scene.messages(20), scene.messages(20)]
    expect(await sink.deliver(before, soon())).toEqual(before.map(() => yes))
    await server?.crash()
    const away = await sink.deliver(during, soon())
    expect(away.map(({ delivered }) => delivered)).toEqual(during.map(() => false))
    await server?.restart()
    await new SinkScene({ ...scene.opened, sink }).deliverAll(during)
    await sink.close?.()
    const ids = (await arrivedIn('restarted')).map(({ id }) => id)
    expect([...new Set(ids)].sort()).toEqual([...before, ...during].map(({ id }) => id).sort())
  }, 60_000)
})
