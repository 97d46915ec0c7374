// @ts-check
/** Enqueueing runs: one by one with many calls in flight, and in bulk. */
import { createBelfry } from '../../dist/index.js'
import { inFlight, median, rateOf, ratioOf, takeTurns } from '../harness/measure.js'
import { openRawServer } from '../harness/raw.js'
import { hundredths, report } from '../harness/report.js'
import { openStore } from '../harness/stores.js'

const ROUNDS = 3
const TURN_MS = 3_000
const CLIENTS = 50
const BATCH = 1_000

/**
 * @param {string} store
 * @param {number} n
 * @param {(title: string) => boolean} wants
 */
export async function enqueued(store, n, wants) {
  await compare(store, `enqueue, ${CLIENTS} in flight`, wants, {
    ours: (job) => inFlight(CLIENTS, TURN_MS, () => job.enqueue(null, { in: '1h' })),
    raw: (raw) => inFlight(CLIENTS, TURN_MS, () => raw.enqueueOne()),
  })
  const items = Array.from({ length: BATCH }, () => ({ payload: null, in: '1h' }))
  await compare(store, 'enqueueMany', wants, {
    ours: (job) =>
      rateOf(n, async () => {
        for (let made = 0; made < n; made += BATCH) await job.enqueueMany(items)
      }),
    raw: (raw) => rateOf(n, () => raw.enqueueMany(n)),
  })
}

/**
 * @param {string} store
 * @param {string} title
 * @param {(title: string) => boolean} wants
 * @param {object} turns
 * @param {(job: import('../../dist/api/jobs/job.js').Job<null>) => Promise<number>} turns.ours
 * @param {(raw: import('../harness/raw.js').RawServer) => Promise<number>} turns.raw
 */
async function compare(store, title, wants, { ours, raw }) {
  if (!wants(title)) return
  const rates = await takeTurns(ROUNDS, {
    ours: async () => {
      const bench = await openStore(store)
      const belfry = createBelfry({ store: bench.store })
      const job = /** @type {import('../../dist/api/jobs/job.js').Job<null>} */ (belfry.job('noop', { run: () => {} }))
      const perSecond = await ours(job)
      await bench.close()
      return perSecond
    },
    raw: async () => {
      const reference = await openRawServer(store)
      const perSecond = await raw(reference)
      await reference.close()
      return perSecond
    },
  })
  report({
    ...{ bench: 'runs', case: title, store, perSecond: Math.round(median(rates.ours)) },
    reference: `raw insert of the same ${store === 'redis' ? 'structures' : 'columns'}`,
    referencePerSecond: Math.round(median(rates.raw)),
    ratio: hundredths(ratioOf(rates.ours, rates.raw)),
  })
}
