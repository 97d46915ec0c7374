// @ts-check
/**
 * Schedules that all tick every second send their events from one process to twelve partitions of one real Kafka broker.
 * Measures how late the broker stores the events, by its own clock, for each client on SQLite and on Postgres.
 */
import { kafkaKind, openKafkaCluster } from '../../test/brokers/kafka/cluster.js'
import { Load } from '../../test/brokers/load.js'
import { verify } from '../../test/brokers/verify.js'
import { dropSchema, freshSchema, postgresUrl } from '../harness/postgres.js'
import { report } from '../harness/report.js'

const PER_SECOND = 10_000
const SECONDS = 15
const SETTLED_WITHIN_MS = 60_000

/** @param {(title: string) => boolean} wants */
export async function kafkaLoad(wants) {
  const title = (/** @type {string} */ client, /** @type {string} */ store) =>
    `kafka: ${PER_SECOND} events/s by ${client} on ${store}`
  const cases = kafkaKind.clients.flatMap((client) => ['sqlite', 'postgres'].map((store) => ({ client, store })))
  const wanted = cases.filter(({ client, store }) => wants(title(client, store)))
  if (wanted.length === 0) return
  await kafkaKind.prepare([...new Set(wanted.map(({ client }) => client))])
  const cluster = await openKafkaCluster({ brokers: 1, partitions: 12 })
  try {
    for (const { client, store } of wanted) {
      const counts = await lateness(cluster, client, store)
      const { expected, arrived, repeated, p50Ms, p99Ms, maxMs } = counts
      const figures = { messages: expected, arrived, repeated, p50Ms, p99Ms, maxMs }
      report({ bench: 'sinks', case: title(client, store), store, partitions: 12, ...figures })
    }
  } finally {
    await cluster.stop()
  }
}

/** @param {import('../../test/brokers/cluster.js').Cluster} cluster @param {string} client @param {string} store */
async function lateness(cluster, client, store) {
  const topic = await cluster.makeDestination(`load-${client}-${store}`)
  const schema = store === 'postgres' ? await freshSchema() : undefined
  const location = schema === undefined ? {} : { postgres: { url: await postgresUrl(), schema } }
  const sink = cluster.sink(client, topic)
  const load = new Load({ name: client, client, sink, perSecond: PER_SECOND, seconds: SECONDS, ...location })
  try {
    await load.start()
    await load.settled(SETTLED_WITHIN_MS)
    return verify(load.expected(), await cluster.read(topic), { isOrdered: false, prefix: 'order/' }).counts
  } finally {
    await load.stop()
    if (schema !== undefined) await dropSchema(schema)
  }
}
