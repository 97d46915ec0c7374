// @ts-check
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { kafka } from '../../dist/sinks/kafka/index.js'
import { startKafka } from '../../test/servers/kafka.js'

/** The headers that the sink adds to each message. */
const HEADERS = {
  'belfry-attempt': '1',
  'belfry-token': '1800000000000000',
  'content-type': 'application/json',
}

/**
 * @param {import('../sinks.js').Batching} batching
 * @returns {Promise<import('../sinks.js').Broker>}
 */
export async function openKafka(batching) {
  const server = await startKafka()
  const brokers = server.url.split(',')
  const client = new Kafka({ brokers, logLevel: logLevel.NOTHING })
  const producer = client.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  return {
    sink: kafka({ topic: 'ours', brokers, ...batching }),
    reference: 'kafkajs: send of a batch of the same messages, acks all',
    send: (events) =>
      producer.send({
        topic: 'bare',
        acks: -1,
        messages: events.map((event) => ({ key: event.schedule_id, value: JSON.stringify(event), headers: HEADERS })),
      }),
    async close() {
      await producer.disconnect()
      await server.stop()
    },
  }
}
