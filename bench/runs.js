// @ts-check
/** Measures the whole engine with an empty handler: how many runs it takes from the tick to settled per second. */

import { plan } from '../dist/core/schedules/plan.js'
import { createBelfry } from '../dist/index.js'
import { makeBacklog } from './harness/backlog.js'
import { median, watchEventLoop } from './harness/measure.js'
import { openRawSqlite } from './harness/raw-sqlite.js'
import { hundredths, report, reportSettings } from './harness/report.js'
import { openStore, storeSettings } from './harness/stores.js'
import { delayed } from './runs/delayed.js'
import { CONCURRENCY, drained } from './runs/drained.js'
import { enqueued } from './runs/enqueued.js'

/** A claim takes half of the concurrency: as many runs as the raw reference takes at once. */
const BATCH = CONCURRENCY / 2
const ROUNDS = 3
const SCHEDULES = 100

/** @type {import('./run.js').Bench} */
export default async function runs({ store = 'memory', n = isServer(store) ? 200_000 : 100_000, wants }) {
  if (isServer(store)) {
    const settings = { runs: n, rounds: ROUNDS, concurrency: CONCURRENCY, batch: BATCH, rawBatch: BATCH }
    reportSettings('runs', { store, ...settings, ...(await storeSettings(store)) })
    await drained(store, n, wants)
    await enqueued(store, n, wants)
    await delayed(store, wants)
    return
  }
  reportSettings('runs', {
    store,
    runs: n,
    rounds: ROUNDS,
    concurrency: CONCURRENCY,
    batch: BATCH,
    schedules: SCHEDULES,
  })
  for (const keep of /** @type {const} */ (['none', 'all'])) {
    /** @type {{ ours: number[], raw: number[], heapMB: number[], rssMB: number[], blockedMs: number[] }} */
    const rates = { ours: [], raw: [], heapMB: [], rssMB: [], blockedMs: [] }
    const reference = store === 'sqlite' ? RAW_SQLITE : STORE_ALONE
    for (let round = 0; round < ROUNDS; round += 1) {
      rates.raw.push(await reference.measure(store, n, keep))
      rates.ours.push(await wholeEngine(store, n, keep, rates))
    }
    report({
      bench: 'runs',
      case: `tick to done, keep ${keep}`,
      store,
      perSecond: Math.round(median(rates.ours)),
      reference: reference.name,
      referencePerSecond: Math.round(median(rates.raw)),
      ratio: hundredths(median(rates.ours) / median(rates.raw)),
      eventLoopBlockedMaxMs: Math.round(Math.max(...rates.blockedMs)),
      heapMB: rates.heapMB,
      rssMB: rates.rssMB,
    })
  }
  await delayed(store, wants)
}

/** @param {string} store */
function isServer(store) {
  return store === 'postgres' || store === 'redis'
}

const RAW_SQLITE = {
  name: 'raw prepared statements on SQLite: record, claim and settle, in batches of 1,000',
  /** @param {string} _name @param {number} n @param {'all' | 'none'} keep */
  measure: async (_name, n, keep) => {
    const raw = openRawSqlite()
    const startedAt = performance.now()
    for (let done = 0; done < n; ) done += raw.cycle(keep)
    const perSecond = (n / (performance.now() - startedAt)) * 1_000
    raw.close()
    return perSecond
  },
}

const STORE_ALONE = { name: 'the store alone: advance, claim, settle in batches of 1,000', measure: storeAlone }

/**
 * @param {string} name
 * @param {number} n
 * @param {'all' | 'none'} keep
 * @param {{ heapMB: number[], rssMB: number[], blockedMs: number[] }} figures
 */
async function wholeEngine(name, n, keep, { heapMB, rssMB, blockedMs }) {
  const bench = await openStore(name)
  await makeBacklog(bench, { schedules: SCHEDULES, each: n / SCHEDULES, job: 'noop', keep })
  const belfry = createBelfry({ store: bench.store, concurrency: CONCURRENCY, lookahead: 0 })
  let done = 0
  /** @type {() => void} */
  let finish = () => {}
  const finished = new Promise((resolve) => {
    finish = () => resolve(undefined)
  })
  belfry.job('noop', { run: () => {}, keep })
  belfry.on('run:succeeded', () => {
    done += 1
    if (done === n) finish()
  })
  const stopWatching = watchEventLoop()
  const startedAt = performance.now()
  await belfry.start()
  await finished
  const perSecond = (n / (performance.now() - startedAt)) * 1_000
  blockedMs.push(stopWatching())
  rssMB.push(Math.round(process.memoryUsage().rss / 1e6))
  heapMB.push(Math.round(process.memoryUsage().heapUsed / 1e6))
  await belfry.stop()
  await bench.close()
  return perSecond
}

/**
 * @param {string} name
 * @param {number} n
 * @param {'all' | 'none'} keep
 */
async function storeAlone(name, n, keep) {
  const bench = await openStore(name)
  const { store } = bench
  await makeBacklog(bench, { schedules: SCHEDULES, each: n / SCHEDULES, job: 'noop', keep })
  const info = { id: 'raw', host: 'bench', pid: process.pid, zoneData: '', jobs: [{ name: 'noop' }] }
  await store.instances.join(info, 600_000)
  const jobs = [{ name: 'noop', limit: BATCH }]
  let done = 0
  const startedAt = performance.now()
  for (let claim = 1; done < n; claim += 1) {
    await store.schedules.advance({ limit: 1, lookaheadMs: 0, plan })
    const { runs } = await store.runs.claim({ instance: 'raw', claim, limit: BATCH, jobs, sinks: [], floor: 0 })
    await store.runs.settle(runs.map((run) => ({ run: run.id, token: run.token, outcome: { kind: 'succeeded' } })))
    done += runs.length
  }
  const perSecond = (n / (performance.now() - startedAt)) * 1_000
  await bench.close()
  return perSecond
}
