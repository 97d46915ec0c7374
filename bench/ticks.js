// @ts-check
/**
 * Records ticks: at each step one tick of every schedule is due, and is recorded together with the schedule's new cursor.
 */
import { plan } from '../dist/core/schedules/plan.js'
import { makeBacklog } from './harness/backlog.js'
import { median, rateOf, ratioOf, takeTurns, watchEventLoop } from './harness/measure.js'
import { openRaw, RAW_BATCH, rawName } from './harness/raw.js'
import { hundredths, report, reportSettings } from './harness/report.js'
import { openStore, storeSettings } from './harness/stores.js'

const BATCH = 1_000
const ROUNDS = 5
const SCHEDULES = 10_000
/** Long enough that no further tick falls due while the bench records the ticks of the last jump. */
const EVERY_MS = 3_600_000

/** @type {import('./run.js').Bench} */
export default async function ticks({ store = 'sqlite', n = 100_000 }) {
  const schedules = Math.min(SCHEDULES, n)
  const settings = { ticks: n, schedules, warmUpRounds: 1, rounds: ROUNDS, batch: BATCH, rawBatch: RAW_BATCH }
  reportSettings('ticks', { store, ...settings, ...(await storeSettings(store)) })
  // Warms up the code: a process that runs for days compiles it once, so compilation must not count.
  await recordTicks(store, schedules, n / schedules, [])
  await recordRaw(store, schedules, n / schedules)
  /** @type {number[]} */
  const blockedMs = []
  const rates = await takeTurns(ROUNDS, {
    ours: () => recordTicks(store, schedules, n / schedules, blockedMs),
    raw: () => recordRaw(store, schedules, n / schedules),
  })
  report({
    bench: 'ticks',
    case: 'one tick of each schedule',
    store,
    perSecond: Math.round(median(rates.ours)),
    reference: `${rawName(store)}: take what is due, insert runs, move cursors`,
    referencePerSecond: Math.round(median(rates.raw)),
    ratio: hundredths(ratioOf(rates.ours, rates.raw)),
    eventLoopBlockedMaxMs: Math.round(Math.max(...blockedMs)),
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
  await makeBacklog(bench, { schedules, each: 0, job: 'noop', keep: 'all', every: '1h' })
  const stopWatching = watchEventLoop()
  let recorded = 0
  const perSecond = await rateOf(schedules * each, async () => {
    for (let tick = 0; tick < each; tick += 1) {
      await bench.skip(EVERY_MS)
      for (let left = true; left; ) {
        const result = await bench.store.schedules.advance({ limit: BATCH, lookaheadMs: 0, plan })
        recorded += result.recorded
        left = result.schedules === BATCH
      }
    }
  })
  if (recorded !== schedules * each) throw new Error(`${recorded} ticks were recorded, not ${schedules * each}`)
  blockedMs.push(stopWatching())
  await bench.close()
  return perSecond
}

/**
 * @param {string} name
 * @param {number} schedules
 * @param {number} each
 */
async function recordRaw(name, schedules, each) {
  const raw = await openRaw(name, schedules)
  const perSecond = await rateOf(schedules * each, async () => {
    for (let tick = 0; tick < each; tick += 1) await raw.recordTicks()
  })
  await raw.close()
  return perSecond
}
