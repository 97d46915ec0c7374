import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kafka } from '../../src/sinks/kafka.js'
import { type Received, SinkScene, sinkContract } from '../../src/testing/sink-contract.js'
import { type Gate, gate } from '../servers/gate.js'
import { consumeKafka, type KafkaRecord, startOwnKafka } from '../servers/kafka.js'
import type { OwnServer } from '../servers/postgres.js'
import { kafkaWire } from './kafka-wire.js'
import { killPublisher } from './killed-publisher.js'
import { refused, scene, soon, yes } from './other-end.js'

const wire = kafkaWire()
let [broker, door]: [OwnServer | undefined, Gate | undefined] = [undefined, undefined]

beforeAll(async () => {
  broker = await startOwnKafka()
  door = await gate(() => Number(broker?.url.split(':')[1]), wire.join)
})

afterAll(async () => {
  await door?.shut()
  await broker?.stop()
})

/** Every connection goes through the door, wherever the broker says that it is. */
function throughTheDoor() {
  const socketFactory = ({ onConnect }: { onConnect: () => void }) => connect(door?.port ?? 0, '127.0.0.1', onConnect)
  return { brokers: async () => [broker?.url ?? ''], client: { socketFactory } }
}

function received({ value, headers }: KafkaRecord): Received {
  return { ...JSON.parse(value), attempt: Number(headers['belfry-attempt']), token: Number(headers['belfry-token']) }
}

const arrivedIn = async (topic: string) => (await consumeKafka(broker?.url ?? '', topic)).map(received)

sinkContract({
  name: 'kafka',
  open: async () => {
    const [topic, other] = [`events-${randomUUID()}`, `other-${randomUUID()}`]
    wire.refuseOver(600_000, 10)
    return {
      sink: kafka({ topic, ...throughTheDoor() }),
      received: () => arrivedIn(topic),
      down: async () => door?.shut(),
      up: async () => door?.open(),
      elsewhere: { options: { topic: other, headers: { tenant: 'one' } }, arrived: () => arrivedIn(other) },
      badOptions: [{ topic: 'no/such topic' }, { topik: 'events' }, { headers: { 'belfry-token': '1' } }, 'events'],
      tooLarge: 'x'.repeat(700_000),
    }
  },
})

describe('the Kafka sink', () => {
  it('sends the key, headers and attributes of CloudEvents, and keeps a key in its partition', async () => {
    const topic = `cloud-${randomUUID()}`
    const options = { ...throughTheDoor(), format: 'cloudevents', mode: 'binary', headers: { team: 'shop' } } as const
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

  it.each([
    [29, 'TOPIC_AUTHORIZATION_FAILED'],
    [3, 'UNKNOWN_TOPIC_OR_PARTITION'],
  ])('fails for good what is for a topic that the broker refuses (%i %s)', async (code) => {
    const sink = kafka({ topic: `refused-${randomUUID()}`, ...throughTheDoor() })
    wire.refuseOver(0, code)
    const outcomes = await sink.deliver(scene.messages(2), soon())
    wire.refuseOver(Number.POSITIVE_INFINITY, 0)
    await sink.close?.()
    expect(outcomes).toMatchObject([refused, refused])
  })

  it('has an idempotent producer where the cluster offers them, and sends again when an answer is lost', async () => {
    const topic = `lost-${randomUUID()}`
    const sink = kafka({ topic, ...throughTheDoor() })
    const before = wire.producerIds
    await sink.open?.()
    expect(wire.producerIds).toBeGreaterThan(before)
    wire.loseAnswer()
    const calls = [scene.messages(5), scene.messages(5), scene.messages(5)]
    const outcomes = await Promise.all(calls.map((messages) => sink.deliver(messages, soon())))
    await sink.close?.()
    const said = calls.flat().filter((_, at) => outcomes.flat()[at]?.delivered)
    const ids = (await arrivedIn(topic)).map(({ id }) => id)
    expect(said.map(({ id }) => id).filter((id) => !ids.includes(id))).toEqual([])
    expect(said.length).toBeGreaterThan(0)
  })

  it("uses a producer of the user's, where the cluster has no idempotent ones too, and leaves it connected", async () => {
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

  it('refuses options that cannot work', () => {
    const brokers = ['127.0.0.1:9092']
    for (const options of [{ brokers }, { topic: 'a b', brokers }, { topic: 'a' }, { topic: 'a', brokers: [] }]) {
      expect(() => kafka(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
    }
    expect(() => kafka({ topic: 'a', brokers, retries: 1 } as never)).toThrow(/"retries" is not an option/)
  })

  it('loses nothing when the publishing process is killed in the middle of a batch', async () => {
    const topic = `killed-${randomUUID()}`
    const options = { topic, brokers: [broker?.url ?? ''] }
    await killPublisher({ sink: 'kafka.js', make: 'kafka', options, arrived: () => arrivedIn(topic) })
  }, 60_000)

  it('goes on when the broker was killed and has come back elsewhere', async () => {
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
