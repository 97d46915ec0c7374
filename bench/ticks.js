// @ts-check
/** Recording ticks: one tick of each schedule is due at a time, and is recorded with the cursor that moves behind it. */
import { plan } from '../dist/core/plan.js'
import { makeBacklog } from './harness/backlog.js'
import { median, watchEventLoop } from './harness/measure.js'
import { openRaw, RAW_BATCH } from './harness/raw-sqlite.js'
import { hundredths, report, reportSettings } from './harness/report.js'
import { openStore } from './harness/stores.js'

const BATCH = 1_000
const ROUNDS = 5
const SCHEDULES = 10_000

/** @type {import('./run.js').Bench} */
export default async function ticks({ store = 'sqlite', n = 100_000 }) {
  const schedules = Math.min(SCHEDULES, n)
  reportSettings('ticks', { store, ticks: n, schedules, rounds: ROUNDS, batch: BATCH, rawBatch: RAW_BATCH })
  /** @type {{ ours: number[], raw: number[], blockedMs: number[] }} */
  const rates = { ours: [], raw: [], blockedMs: [] }
  for (let round = 0; round < ROUNDS; round += 1) {
    rates.ours.push(await recordTicks(store, schedules, n / schedules, rates.blockedMs))
    rates.raw.push(recordRaw(schedules, n / schedules))
  }
  report({
    bench: 'ticks',
    case: 'one tick of each schedule',
    store,
    perSecond: Math.round(median(rates.ours)),
    reference: 'raw prepared statements on SQLite: insert a run, move a cursor',
    referencePerSecond: Math.round(median(rates.raw)),
    ratio: hundredths(median(rates.ours.map((ours, round) => ours / (rates.raw[round] ?? Number.NaN)))),
    eventLoopBlockedMaxMs: Math.round(Math.max(...rates.blockedMs)),
  })
}

/**
 * @param {string} name
 * @param {number} schedules
 * @param {number} each
 * @param {number[]} blockedMs
 */
async function recordTicks(name, schedules, each, blockedMs) {
  const bench = await openStore(name)
  await makeBacklog(bench, { schedules, each: 0, job: 'noop', keep: 'all' })
  const stopWatching = watchEventLoop()
  const startedAt = performance.now()
  // Counted, not calculated: time goes on meanwhile, and brings ticks of its own.
  let recorded = 0
  for (let tick = 0; tick < each; tick += 1) {
    await bench.skip(1_000)
    for (let left = true; left; ) {
      const result = await bench.store.schedules.advance({ limit: BATCH, lookaheadMs: 0, plan })
      recorded += result.recorded
      left = result.schedules === BATCH
    }
  }
  const perSecond = (recorded / (performance.now() - startedAt)) * 1_000
  if (recorded < schedules * each) throw new Error(`only ${recorded} ticks were recorded`)
  blockedMs.push(stopWatching())
  await bench.close()
  return perSecond
}

/**
 * @param {number} schedules
 * @param {number} each
 */
function recordRaw(schedules, each) {
  const raw = openRaw(schedules)
  const startedAt = performance.now()
  for (let tick = 0; tick < each; tick += 1) raw.recordTicks()
  const perSecond = ((schedules * each) / (performance.now() - startedAt)) * 1_000
  raw.close()
  return perSecond
}
