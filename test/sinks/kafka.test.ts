import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, beforeAll } from 'vitest'
import { kafka } from '../../src/sinks/kafka.js'
import { type Received, sinkContract } from '../../src/testing/sink-contract.js'
import { type Gate, gate } from '../servers/gate.js'
import { consumeKafka, type KafkaRecord, startOwnKafka } from '../servers/kafka.js'
import type { OwnServer } from '../servers/postgres.js'
import { kafkaWire } from './kafka-wire.js'

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
