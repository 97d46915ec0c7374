// @ts-check
/** Many schedules at one instant: how long after it each of them has started. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createBelfry } from '../dist/index.js'
import { median, percentile } from './harness/measure.js'
import { report, reportSettings, tenths } from './harness/report.js'
import { openStore } from './harness/stores.js'

const ROUNDS = 3
const AHEAD_MS = 3_000

/** @type {import('./run.js').Bench} */
export default async function burst({ store = 'sqlite', n = 1_000 }) {
  reportSettings('burst', { store, schedules: n, rounds: ROUNDS, concurrency: n })
  /** @type {number[][]} */
  const rounds = []
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await startAll(store, n))
  const over = (/** @type {number} */ part) => tenths(median(rounds.map((lateMs) => percentile(lateMs, part))))
  report({
    bench: 'burst',
    case: `${n} schedules at one instant: start after tick`,
    store,
    p50Ms: over(0.5),
    p99Ms: over(0.99),
    maxMs: tenths(Math.max(...rounds.flat())),
  })
}

/**
 * @param {string} name
 * @param {number} schedules
 */
async function startAll(name, schedules) {
  const { store } = await openStore(name)
  const belfry = createBelfry({ store, concurrency: schedules })
  /** @type {number[]} */
  const lateMs = []
  belfry.job('note', { run: ({ tick }) => void lateMs.push(Date.now() - tick.getTime()) })
  await belfry.start()
  const at = new Date(Date.now() + AHEAD_MS).toISOString()
  /** @type {[string, { at: string, job: string }][]} */
  const inputs = Array.from({ length: schedules }, (_, index) => [`burst/${index}`, { at, job: 'note' }])
  await belfry.schedules.putMany(inputs)
  while (lateMs.length < schedules) await sleep(50)
  await belfry.stop()
  return lateMs
}
