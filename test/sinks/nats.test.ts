import { type JsMsg, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nats } from '../../src/sinks/nats/index.js'
import { type ReceivedMessage, sinkContract } from '../../src/testing/sink-contract.js'
import { startOwnNats } from '../servers/nats.js'
import type { OwnServer } from '../servers/postgres.js'
import { refused, runAnsweredInPart, scene, soon, yes } from './deliveries.js'
import { killPublisher } from './killed-publisher.js'

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

/** All messages of a stream, oldest first. */
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

async function arrivedIn(stream: string): Promise<ReceivedMessage[]> {
  return (await stored(stream)).map((message) => ({
    ...message.json<ReceivedMessage>(),
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
      sink: nats({ subject: 'events.belfry', servers: url(), overrides: { subject: ['other.*'], headers: true } }),
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

describe('the NATS sink', () => {
  it('lets the server drop repeats, and counts them as delivered', async () => {
    await addStream('deduped')
    const sink = nats({ subject: 'deduped.here', servers: [url()], headers: { team: 'shop' } })
    const [first, second] = scene.messages(2)
    if (first === undefined || second === undefined) throw new Error('there are no messages')
    expect(await sink.deliver([first, second], soon())).toEqual([yes, yes])
    expect(await sink.deliver([{ ...first, attempt: 2 }], soon())).toEqual([yes])
    await sink.close?.()
    const messages = await stored('deduped')
    expect(messages.map(({ headers }) => headers?.get('Nats-Msg-Id'))).toEqual([first.dedupeId, second.dedupeId])
    expect(messages[0]?.headers?.get('team')).toBe('shop')
  })

  it('permanently fails messages without a stream after three attempts, and those too large for the stream', async () => {
    await addStream('small', { max_msg_size: 1_000 })
    const sink = nats({ subject: 'nobody.listens', servers: url(), overrides: { subject: ['small.*'] } })
    const options = { subject: 'small.one' }
    const messages = [
      scene.message({ attempt: 3 }),
      scene.message({ options }),
      scene.message({ options, payload: 'x'.repeat(2_000) }),
    ]
    const [early] = await sink.deliver([scene.message()], soon())
    expect(early).toMatchObject({ delivered: false, error: { code: 'SINK_REFUSED' } })
    expect(early).not.toHaveProperty('retryable')
    const outcomes = await sink.deliver(messages, soon())
    await sink.close?.()
    expect(outcomes).toMatchObject([refused, yes, refused])
    expect(JSON.stringify(outcomes.map((outcome) => 'error' in outcome && String(outcome.error)))).toMatch(
      /no stream covers that subject.*larger than the stream allows/,
    )
  })

  it('counts as delivered only the messages that the server answered for', async () => {
    await addStream('part')
    const connection = await connect({ servers: url() })
    connection.subscribe('silent')
    const request = connection.request.bind(connection)
    const left = { isNext: false, count: 0 }
    connection.request = (subject, ...rest) => {
      if (!left.isNext) return request(subject, ...rest)
      left.isNext = false
      left.count += 1
      return request('silent', ...rest)
    }
    const answerInPart = async () => {
      left.isNext = true
      return { leftOut: () => left.count }
    }
    await runAnsweredInPart({
      sink: nats({ subject: 'part.one', connection }),
      received: () => arrivedIn('part'),
      answerInPart,
    })
    await connection.close()
  })

  it('retries messages that a full stream refuses', async () => {
    await addStream('full', { max_msgs: 1, discard: 'new' })
    const sink = nats({ subject: 'full.one', servers: url() })
    const outcomes = [
      ...(await sink.deliver(scene.messages(1), soon())),
      ...(await sink.deliver(scene.messages(1), soon())),
    ]
    await sink.close?.()
    expect(outcomes).toMatchObject([yes, { delivered: false }])
    expect(outcomes[1]).not.toHaveProperty('retryable')
  })

  it('retries while no server with JetStream answers, and reports it', async () => {
    const plain = await startOwnNats({ jetstream: false })
    const sink = nats({ subject: 'a.b', servers: plain.url })
    const outcomes = await sink.deliver(scene.messages(2), soon())
    await sink.close?.()
    await plain.stop()
    const error = { code: 'SINK_UNREACHABLE', message: expect.stringMatching(/no server with JetStream answers/) }
    const outage = { delivered: false, unreachable: true, error }
    expect(outcomes).toMatchObject([outage, outage])
  })

  it('uses the caller’s connection, and leaves it open', async () => {
    const connection = await connect({ servers: url() })
    const sink = nats({ subject: 'deduped.there', connection })
    expect(await sink.deliver(scene.messages(1), soon())).toEqual([yes])
    await sink.close?.()
    expect(connection.isClosed()).toBe(false)
    await connection.close()
    expect(await sink.deliver(scene.messages(1), soon())).toMatchObject([{ delivered: false, unreachable: true }])
  })

  it('refuses invalid options', () => {
    for (const options of [{ servers: url() }, { subject: 'a.>', servers: url() }, { subject: 'a' }]) {
      expect(() => nats(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
  })

  it('loses nothing when the publishing process is killed in the middle of a batch', async () => {
    await addStream('killed')
    const options = { subject: 'killed.one', servers: url() }
    await killPublisher({ sink: 'nats/index.js', make: 'nats', options, arrived: () => arrivedIn('killed') })
  }, 60_000)
})
