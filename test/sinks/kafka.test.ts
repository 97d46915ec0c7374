import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kafka } from '../../src/sinks/kafka/index.js'
import { type ReceivedMessage, SinkScene, sinkContract } from '../../src/testing/sink-contract.js'
import { consumeKafka, type KafkaRecord, rawKafka, startOwnKafka } from '../servers/kafka.js'
import { type OutageProxy, outageProxy } from '../servers/outage-proxy.js'
import type { OwnServer } from '../servers/postgres.js'
import { refused, scene, soon, yes } from './deliveries.js'
import { kafkaWire } from './kafka-wire.js'
import { killPublisher } from './killed-publisher.js'

const wire = kafkaWire()
let [broker, proxy]: [OwnServer | undefined, OutageProxy | undefined] = [undefined, undefined]

beforeAll(async () => {
  broker = await startOwnKafka()
  proxy = await outageProxy(() => Number(broker?.url.split(':')[1]), wire.join)
})

afterAll(async () => {
  await proxy?.cut()
  await broker?.stop()
})

/** Connects through the proxy, whatever address the broker advertises. */
function throughProxy() {
  const socketFactory = ({ onConnect }: { onConnect: () => void }) => connect(proxy?.port ?? 0, '127.0.0.1', onConnect)
  return { brokers: async () => [broker?.url ?? ''], clientOptions: { socketFactory } }
}

function received({ value, headers }: KafkaRecord): ReceivedMessage {
  return { ...JSON.parse(value), attempt: Number(headers['belfry-attempt']), token: Number(headers['belfry-token']) }
}

const arrivedIn = async (topic: string) => (await consumeKafka(broker?.url ?? '', topic)).map(received)

sinkContract({
  name: 'kafka',
  open: async () => {
    const [topic, other] = [`events-${randomUUID()}`, `other-${randomUUID()}`]
    wire.refuseOver(600_000, 10)
    return {
      sink: kafka({ topic, ...throughProxy(), overrides: { topic: [other], headers: ['tenant'] } }),
      received: () => arrivedIn(topic),
      down: async () => proxy?.cut(),
      up: async () => proxy?.restore(),
      elsewhere: { options: { topic: other, headers: { tenant: 'one' } }, arrived: () => arrivedIn(other) },
      badOptions: [{ topic: 'no/such topic' }, { topik: 'events' }, { headers: { 'belfry-token': '1' } }, 'events'],
      tooLarge: 'x'.repeat(700_000),
      answerInPart: async () => wire.leaveOut(),
    }
  },
})

describe('the Kafka sink', () => {
  it('sends the key, headers and attributes of CloudEvents, and keeps a key in one partition', async () => {
    const topic = `cloud-${randomUUID()}`
    const options = { ...throughProxy(), format: 'cloudevents', mode: 'binary', headers: { team: 'shop' } } as const
    const sink = kafka({ topic, ...options })
    const messages = ['a', 'b', 'a'].map((key) => scene.message({ key, payload: { key } }))
    await sink.deliver(messages, soon())
    await sink.close?.()
    const records = await consumeKafka(broker?.url ?? '', topic)
    const [first, second] = records.filter(({ key }) => key === 'a')
    expect(first?.partition).toBe(second?.partition)
    expect(first).toMatchObject({
      value: '{"key":"a"}',
      headers: { team: 'shop', ce_id: messages[0]?.id, ce_specversion: '1.0', 'content-type': 'application/json' },
    })
  })

  it('permanently fails messages for a topic that the broker refuses', async () => {
    const sink = kafka({ topic: `refused-${randomUUID()}`, ...throughProxy() })
    wire.refuseOver(0, 29)
    const outcomes = await sink.deliver(scene.messages(2), soon())
    wire.refuseOver(Number.POSITIVE_INFINITY, 0)
    await sink.close?.()
    expect(outcomes).toMatchObject([refused, refused])
  })

  it('does not permanently fail messages for a topic that the broker does not know yet', async () => {
    const sink = kafka({ topic: `unknown-${randomUUID()}`, ...throughProxy() })
    wire.refuseOver(0, 3)
    const [outcome] = await sink.deliver(scene.messages(1), soon())
    wire.refuseOver(Number.POSITIVE_INFINITY, 0)
    expect(outcome).toMatchObject({ delivered: false, error: { code: 'SINK_REFUSED' } })
    expect(outcome).not.toHaveProperty('retryable')
    expect(await sink.deliver(scene.messages(1), soon())).toEqual([yes])
    await sink.close?.()
  })

  it('sends again when an answer was lost', async () => {
    const topic = `lost-${randomUUID()}`
    const sink = kafka({ topic, ...throughProxy() })
    await sink.deliver(scene.messages(1), soon())
    wire.loseAnswer()
    const messages = scene.messages(15)
    const outcomes = await Promise.all([0, 5, 10].map((at) => sink.deliver(messages.slice(at, at + 5), soon())))
    await sink.close?.()
    expect(outcomes.flat()).toEqual(messages.map(() => yes))
    const ids = (await arrivedIn(topic)).map(({ id }) => id)
    expect(messages.filter(({ id }) => !ids.includes(id))).toEqual([])
  })

  it('writes events as documented, read by an independent consumer', async () => {
    const topic = `bytes-${randomUUID()}`
    const sink = kafka({ topic, ...throughProxy() })
    const event = { id: 'größe-1767258000', generated_at: '2026-01-01T09:00:00.000Z', schedule_id: 'größe' }
    await sink.deliver([scene.message({ ...event, payload: { text: 'ünïcode ✓', list: [1, null] } })], soon())
    await sink.close?.()
    const bytes = await rawKafka(broker?.url ?? '', topic)
    expect(bytes.toString('utf8')).toBe(
      '{"id":"größe-1767258000","generated_at":"2026-01-01T09:00:00.000Z","schedule_id":"größe",' +
        '"payload":{"text":"ünïcode ✓","list":[1,null]}}',
    )
  })

  it('uses the caller’s producer, and leaves it connected', async () => {
    const topic = `own-${randomUUID()}`
    const { url = '' } = broker ?? {}
    const plain = kafka({ topic, brokers: [url] })
    expect(await plain.deliver(scene.messages(2), soon())).toEqual([yes, yes])
    await plain.close?.()
    const client = new Kafka({ brokers: [url], logLevel: logLevel.NOTHING })
    const producer = client.producer({ createPartitioner: Partitioners.DefaultPartitioner })
    const sink = kafka({ topic, producer })
    expect(await sink.deliver(scene.messages(2), soon())).toEqual([yes, yes])
    await sink.close?.()
    await producer.send({ topic, messages: [{ value: '{}' }] })
    await producer.disconnect()
    expect(await consumeKafka(url, topic)).toHaveLength(5)
  })

  it('does not count messages as delivered that the caller’s producer did not answer for', async () => {
    const answers: unknown[][] = [[], [{ topicName: 'events', partition: 0, errorCode: 0 }]]
    const sent: string[] = []
    const producer = {
      connect: async () => {},
      send: async ({ messages }: { messages: readonly { key: string }[] }) => {
        sent.push(...messages.map(({ key }) => key))
        return answers.shift() ?? answers.at(-1)
      },
    }
    const sink = kafka({ topic: 'events', producer })
    expect(await sink.deliver([scene.message({ key: 'a' })], soon())).toEqual([yes])
    expect(sent).toEqual(['a', 'a'])
  })

  it('refuses invalid options', () => {
    const brokers = ['127.0.0.1:9092']
    for (const options of [{ brokers }, { topic: 'a b', brokers }, { topic: 'a' }, { topic: 'a', brokers: [] }]) {
      expect(() => kafka(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
    expect(() => kafka({ topic: 'a', brokers, retries: 1 } as never)).toThrow(/"retries" is not an option/)
    for (const wrong of [
      { client: 'kafka-node' },
      { client: { ssl: true } },
      { ssl: { cert: 'x' } },
      { ssl: { cert: '-----BEGIN CERTIFICATE-----' } },
      { sasl: { mechanism: 'gssapi' } },
      { sasl: { mechanism: 'plain', username: 'me' } },
      { sasl: { mechanism: 'oauthbearer' } },
      { compression: 'brotli' },
      { acks: 0 },
      { producer: { connect: async () => {}, send: async () => {} } },
    ]) {
      const options = { topic: 'a', brokers, client: 'kafkajs', ...wrong }
      expect(() => kafka(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
    const snappy = { topic: 'a', brokers, client: 'kafkajs', compression: 'snappy' } as const
    expect(() => kafka(snappy)).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }))
  })

  it('loses nothing when the publishing process is killed in the middle of a batch', async () => {
    const topic = `killed-${randomUUID()}`
    const options = { topic, brokers: [broker?.url ?? ''] }
    await killPublisher({ sink: 'kafka/index.js', make: 'kafka', options, arrived: () => arrivedIn(topic) })
  }, 60_000)

  it('continues after the broker was killed and restarted at another address', async () => {
    const topic = `restarted-${randomUUID()}`
    const sink = kafka({ topic, brokers: async () => [broker?.url ?? ''] })
    await sink.deliver(scene.messages(1), soon())
    await broker?.crash()
    const messages = scene.messages(3)
    const away = await sink.deliver(messages, soon())
    expect(away.map(({ delivered }) => delivered)).toEqual([false, false, false])
    await broker?.restart()
    await new SinkScene({ ...scene.opened, sink }).deliverAll(messages)
    await sink.close?.()
    expect((await arrivedIn(topic)).map(({ id }) => id).sort()).toEqual(messages.map(({ id }) => id).sort())
  })
})
