// @ts-check
import { connect } from 'amqplib'
import { rabbitmq } from '../../dist/sinks/rabbitmq/index.js'
import { startRabbitMq } from '../../test/servers/rabbitmq.js'

/**
 * @param {import('../sinks.js').Batching} batching
 * @returns {Promise<import('../sinks.js').Broker>}
 */
export async function openRabbitMq(batching) {
  const server = await startRabbitMq()
  const connection = await connect(server.url)
  const channel = await connection.createConfirmChannel()
  for (const name of ['bench-ours', 'bench-bare']) await channel.assertQueue(name, { durable: true })
  return {
    sink: rabbitmq({ url: server.url, queue: 'bench-ours', ...batching }),
    reference: 'amqplib: publish on a confirm channel, persistent and mandatory, a batch at a time',
    send: (events) => Promise.all(events.map((event) => confirmed(channel, event))),
    async close() {
      for (const name of ['bench-ours', 'bench-bare']) await channel.deleteQueue(name)
      await connection.close()
      await server.stop()
    },
  }
}

/**
 * @param {import('amqplib').ConfirmChannel} channel
 * @param {import('../sinks.js').Event} event
 */
function confirmed(channel, event) {
  return new Promise((resolve, reject) => {
    const options = { persistent: true, mandatory: true, messageId: event.id }
    channel.publish('', 'bench-bare', Buffer.from(JSON.stringify(event)), options, (error) =>
      error === null ? resolve(undefined) : reject(error),
    )
  })
}
