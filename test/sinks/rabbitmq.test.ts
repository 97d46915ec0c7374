import { connect } from 'amqplib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rabbitmq } from '../../src/sinks/rabbitmq/index.js'
import { type Received, SinkScene, sinkContract } from '../../src/testing/sink-contract.js'
import { type Gate, gate } from '../servers/gate.js'
import type { OwnServer } from '../servers/postgres.js'
import { MAX_MESSAGE_BYTES, startOwnRabbitMq } from '../servers/rabbitmq.js'

let [server, door]: [OwnServer | undefined, Gate | undefined] = [undefined, undefined]
const direct = () => server?.url ?? ''
const throughTheDoor = () => Object.assign(new URL(direct()), { port: door?.port }).href

beforeAll(async () => {
  server = await startOwnRabbitMq()
  door = await gate(() => Number(new URL(direct()).port))
}, 60_000)

afterAll(async () => {
  await door?.shut()
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

/** All that a queue has, oldest first; it keeps it. */
function arrivedIn(queue: string): Promise<Received[]> {
  return withChannel(async (channel) => {
    const messages: Received[] = []
    for (let message = await channel.get(queue); message !== false; message = await channel.get(queue)) {
      const headers = message.properties.headers ?? {}
      const [attempt, token] = [Number(headers['belfry-attempt']), Number(headers['belfry-token'])]
      messages.push({ ...JSON.parse(message.content.toString()), attempt, token })
    }
    channel.nackAll()
    return messages
  })
}

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
      sink: rabbitmq({ url: throughTheDoor(), queue: 'events' }),
      received: () => arrivedIn('events'),
      down: async () => door?.shut(),
      up: async () => door?.open(),
      elsewhere: {
        options: { exchange: 'other', routingKey: 'orders.new', headers: { tenant: 'one' } },
        arrived: () => arrivedIn('elsewhere'),
      },
      badOptions: [{ exchange: '' }, { queue: 'x'.repeat(256) }, { key: 'a' }, { headers: { 'belfry-token': '1' } }],
      tooLarge: 'x'.repeat(MAX_MESSAGE_BYTES),
    }
  },
})
