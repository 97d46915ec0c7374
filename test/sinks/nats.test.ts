import { type JsMsg, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll } from 'vitest'
import { nats } from '../../src/sinks/nats.js'
import { type Received, sinkContract } from '../../src/testing/sink-contract.js'
import { startOwnNats } from '../servers/nats.js'
import type { OwnServer } from '../servers/postgres.js'

const MAX_PAYLOAD = 200_000
let server: OwnServer | undefined
const url = () => server?.url ?? ''

beforeAll(async () => {
  server = await startOwnNats({ maxPayload: MAX_PAYLOAD })
})

afterAll(() => server?.stop())

async function withConnection<Answer>(work: (connection: NatsConnection) => Promise<Answer>): Promise<Answer> {
  const connection = await connect({ servers: url() })
  try {
    return await work(connection)
  } finally {
    await connection.close()
  }
}

/** All that a stream has, oldest first. */
function stored(stream: string): Promise<JsMsg[]> {
  return withConnection(async (connection) => {
    const { streams } = await jetstreamManager(connection)
    const { state } = await streams.info(stream)
    const consumer = await jetstream(connection).consumers.get(stream)
    const messages: JsMsg[] = []
    for await (const message of await consumer.fetch({ max_messages: state.messages || 1, expires: 1_000 })) {
      messages.push(message)
      if (messages.length === state.messages) break
    }
    return messages
  })
}

async function arrivedIn(stream: string): Promise<Received[]> {
  return (await stored(stream)).map((message) => ({
    ...message.json<Received>(),
    attempt: Number(message.headers?.get('belfry-attempt')),
    token: Number(message.headers?.get('belfry-token')),
  }))
}

function addStream(name: string, settings: object = {}): Promise<unknown> {
  return withConnection(async (connection) => {
    const { streams } = await jetstreamManager(connection)
    await streams.add({ name, subjects: [`${name}.>`], ...settings })
  })
}

sinkContract({
  name: 'nats',
  open: async () => {
    await addStream('events')
    await addStream('other')
    return {
      sink: nats({ subject: 'events.belfry', servers: url() }),
      received: () => arrivedIn('events'),
      down: async () => server?.crash(),
      up: async () => server?.restart(),
      elsewhere: {
        options: { subject: 'other.here', headers: { tenant: 'one' } },
        arrived: () => arrivedIn('other'),
      },
      badOptions: [{ subject: 'events.*' }, { subject: 'a..b' }, { subjekt: 'a' }, { headers: { a: 'b\r\nc: d' } }],
      tooLarge: 'x'.repeat(MAX_PAYLOAD),
    }
  },
})
