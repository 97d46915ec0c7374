// @ts-check
/**
 * Schedules that tick every second send their events from one process to twelve partitions of one real Kafka broker.
 * Measures how late the broker stores the events, by its own clock, for each client on SQLite and on Postgres: with
 * ticks that are spread over each second, and with all ticks of a second at once.
 */
import { kafkaKind, openKafkaCluster } from '../../test/brokers/kafka/cluster.js'
import { Load } from '../../test/brokers/load.js'
import { verify } from '../../test/brokers/verify.js'
import { dropSchema, freshSchema, postgresUrl } from '../harness/postgres.js'
import { report } from '../harness/report.js'

const PER_SECOND = 10_000
const SECONDS = 15
/** How long to wait after the load until all events have arrived: a busy machine falls behind. */
const SETTLED_WITHIN_MS = 180_000

/** @typedef {{ readonly client: string, readonly store: string, readonly isSpread: boolean }} Case */

/** @param {(title: string) => boolean} wants */
export async function kafkaLoad(wants) {
  const title = (/** @type {Case} */ { client, store, isSpread }) =>
    `kafka: ${PER_SECOND} events/s ${isSpread ? 'spread' : 'at once'} by ${client} on ${store}`
  const cases = [true, false].flatMap((isSpread) =>
    kafkaKind.clients.flatMap((client) => ['sqlite', 'postgres'].map((store) => ({ client, store, isSpread }))),
  )
  const wanted = cases.filter((each) => wants(title(each)))
  if (wanted.length === 0) return
  await kafkaKind.prepare([...new Set(wanted.map(({ client }) => client))])
  const cluster = await openKafkaCluster({ brokers: 1, partitions: 12 })
  try {
    for (const each of wanted) {
      const counts = await lateness(cluster, each)
      const { expected, arrived, repeated, p50Ms, p99Ms, maxMs } = counts
      const figures = { messages: expected, arrived, repeated, p50Ms, p99Ms, maxMs }
      report({ bench: 'sinks', case: title(each), store: each.store, partitions: 12, ...figures })
    }
  } finally {
    await cluster.stop()
  }
}

/** @param {import('../../test/brokers/cluster.js').Cluster} cluster @param {Case} how */
async function lateness(cluster, { client, store, isSpread }) {
  const topic = await cluster.makeDestination(`load-${client}-${store}-${isSpread ? 'spread' : 'at-once'}`)
  const schema = store === 'postgres' ? await freshSchema() : undefined
  const location = schema === undefined ? {} : { postgres: { url: await postgresUrl(), schema } }
  const sink = cluster.sink(client, topic)
  const load = new Load({ name: client, client, sink, perSecond: PER_SECOND, seconds: SECONDS, isSpread, ...location })
  try {
    await load.start()
    await load.settled(SETTLED_WITHIN_MS)
    return verify(load.expected(), await cluster.read(topic), { isOrdered: false, prefix: 'order/' }).counts
  } finally {
    await load.stop()
    if (schema !== undefined) await dropSchema(schema)
  }
}
