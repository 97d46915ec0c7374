// @ts-check
/**
 * Measures the whole engine from the tick to the acknowledged message. The reference is the bare client with the same
 * messages, the same batch size, and as many batches in flight.
 */
import { createBelfry } from '../dist/index.js'
import { makeBacklog } from './harness/backlog.js'
import { median, rateOf, ratioOf, takeTurns } from './harness/measure.js'
import { hundredths, report, reportSettings } from './harness/report.js'
import { openStore, storeSettings } from './harness/stores.js'
import { openKafka } from './sinks/kafka.js'
import { kafkaLoad } from './sinks/load.js'
import { openNats } from './sinks/nats.js'
import { openRabbitMq } from './sinks/rabbitmq.js'
import { openRedisStream } from './sinks/redis-stream.js'
import { openWebhook } from './sinks/webhook.js'

/**
 * @typedef {import('../dist/core/sink.js').Sink} Sink
 * @typedef {{ id: string, generated_at: string, schedule_id: string, payload: null }} Event
 *
 * @typedef {object} Broker
 * @property {Sink} sink
 * @property {string} reference Describes the bare client's work in the report.
 * @property {(events: readonly Event[]) => Promise<unknown>} send Sends a batch by the bare client, until acknowledged.
 * @property {() => Promise<void>} close
 *
 * @typedef {{ readonly batch: number, readonly concurrency: number }} Batching
 */

const ROUNDS = 5
const SCHEDULES = 100
const BATCHING = { batch: 500, concurrency: 4 }

/** @type {Readonly<Record<string, { batching: Batching, share?: number, open: (batching: Batching) => Promise<Broker> }>>} */
const CASES = {
  'redis-stream': { batching: BATCHING, open: openRedisStream },
  nats: { batching: BATCHING, open: openNats },
  kafka: { batching: BATCHING, open: openKafka },
  rabbitmq: { batching: BATCHING, open: openRabbitMq },
  webhook: { batching: { batch: 1, concurrency: 32 }, share: 5, open: openWebhook },
}

/** @type {import('./run.js').Bench} */
export default async function sinks({ store = 'memory', n = 50_000, wants }) {
  reportSettings('sinks', { store, messages: n, schedules: SCHEDULES, rounds: ROUNDS, ...(await storeSettings(store)) })
  for (const [name, { batching, share = 1, open }] of Object.entries(CASES)) {
    if (!wants(name)) continue
    const broker = await open(batching)
    const count = Math.ceil(n / share / SCHEDULES) * SCHEDULES
    const rates = await takeTurns(ROUNDS, {
      ours: () => wholeEngine(store, count, broker.sink),
      bare: () => bareClient(count, batching, broker.send),
    })
    await broker.close()
    report({
      bench: 'sinks',
      case: `${name}: tick to acknowledged`,
      store,
      ...{ messages: count, ...batching },
      perSecond: Math.round(median(rates.ours)),
      reference: broker.reference,
      referencePerSecond: Math.round(median(rates.bare)),
      ratio: hundredths(ratioOf(rates.ours, rates.bare)),
    })
  }
  await kafkaLoad(wants)
}

/**
 * @param {string} name
 * @param {number} count
 * @param {Sink} sink
 */
async function wholeEngine(name, count, sink) {
  const bench = await openStore(name)
  await makeBacklog(bench, { schedules: SCHEDULES, each: count / SCHEDULES, to: 'out', keep: 'none' })
  const belfry = createBelfry({ store: bench.store, sinks: { out: sink }, lookahead: 0 })
  let done = 0
  const perSecond = await rateOf(count, async () => {
    const finished = new Promise((resolve) => {
      belfry.on('run:succeeded', () => {
        done += 1
        if (done === count) resolve(undefined)
      })
    })
    await belfry.start()
    await finished
  })
  await belfry.stop()
  await bench.close()
  return perSecond
}

let sent = 0

/**
 * @param {number} count
 * @param {Batching} batching
 * @param {Broker['send']} send
 */
async function bareClient(count, { batch, concurrency }, send) {
  let left = count
  const loop = async () => {
    while (left > 0) {
      const size = Math.min(batch, left)
      left -= size
      await send(Array.from({ length: size }, event))
    }
  }
  return rateOf(count, () => Promise.all(Array.from({ length: concurrency }, loop)))
}

/** @returns {Event} */
function event() {
  sent += 1
  const schedule = `bench/${sent % SCHEDULES}`
  const generated_at = new Date(1_800_000_000_000 + sent * 1_000).toISOString()
  return { id: `${schedule}-${1_800_000_000 + sent}`, generated_at, schedule_id: schedule, payload: null }
}
