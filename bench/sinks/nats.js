// @ts-check
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { nats } from '../../dist/sinks/nats/index.js'
import { startNats } from '../../test/servers/nats.js'

/**
 * @param {import('../sinks.js').Batching} batching
 * @returns {Promise<import('../sinks.js').Broker>}
 */
export async function openNats(batching) {
  const server = await startNats()
  const connection = await connect({ servers: server.url })
  const { streams } = await jetstreamManager(connection)
  for (const name of ['ours', 'bare']) await streams.add({ name, subjects: [`${name}.>`] })
  const stream = jetstream(connection)
  return {
    sink: nats({ subject: 'ours.bench', servers: server.url, ...batching }),
    reference: '@nats-io/jetstream: publish with an id, a batch at a time',
    send: (events) =>
      Promise.all(events.map((event) => stream.publish('bare.bench', JSON.stringify(event), { msgID: event.id }))),
    async close() {
      for (const name of ['ours', 'bare']) await streams.delete(name)
      await connection.close()
      await server.stop()
    },
  }
}
