// @ts-check
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { kafka } from '../../dist/sinks/kafka.js'
import { startKafka } from '../../test/servers/kafka.js'

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
    reference: 'kafkajs: send of a batch, acks all, one batch after the other',
    send: (events) =>
      producer.send({
        topic: 'bare',
        acks: -1,
        messages: events.map((event) => ({ key: event.schedule_id, value: JSON.stringify(event) })),
      }),
    async close() {
      await producer.disconnect()
      await server.stop()
    },
  }
}
