// @ts-check
/** The cost of an idle instance, and the lateness of one with very few ticks. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseSchedule } from '../dist/api/schedules/schedule-input.js'
import { createBelfry } from '../dist/index.js'
import { percentile } from './harness/measure.js'
import { hundredths, report, reportSettings, tenths } from './harness/report.js'
import { openStore } from './harness/stores.js'

const IDLE_MS = 20_000
const LONE_MS = 30_000

/** @type {import('./run.js').Bench} */
export default async function idle({ store = 'sqlite', n = 100_000 }) {
  reportSettings('idle', { store, schedules: n, idleMs: IDLE_MS, loneMs: LONE_MS })
  await nothingDue(store, n)
  await loneSchedule(store)
}

/**
 * @param {string} name
 * @param {number} schedules
 */
async function nothingDue(name, schedules) {
  const { store } = await openStore(name)
  for (let at = 0; at < schedules; at += 1_000) {
    const writes = Array.from({ length: Math.min(1_000, schedules - at) }, (_, index) => {
      const id = `idle/${at + index}`
      return { id, definition: parseSchedule(id, { cron: '0 0 1 1 *', job: 'noop' }, 10_000) }
    })
    await store.schedules.put(writes)
  }
  const belfry = createBelfry({ store })
  belfry.job('noop', { run: () => {} })
  await belfry.start()
  await sleep(2_000)
  const before = process.cpuUsage()
  await sleep(IDLE_MS)
  const { user, system } = process.cpuUsage(before)
  report({
    bench: 'idle',
    case: `${schedules} schedules, none due`,
    store: name,
    cpuPercent: hundredths(((user + system) / 1_000 / IDLE_MS) * 100),
    rssMB: Math.round(process.memoryUsage().rss / 1e6),
  })
  await belfry.stop()
}

/** @param {string} name */
async function loneSchedule(name) {
  const { store } = await openStore(name)
  const belfry = createBelfry({ store })
  /** @type {number[]} */
  const lateMs = []
  belfry.job('note', { run: ({ tick }) => void lateMs.push(Date.now() - tick.getTime()) })
  belfry.schedule('lone', { every: '1s', job: 'note' })
  await belfry.start()
  await sleep(LONE_MS)
  await belfry.stop()
  report({
    bench: 'idle',
    case: 'a lone schedule every second: start after tick',
    store: name,
    runs: lateMs.length,
    p50Ms: tenths(percentile(lateMs, 0.5)),
    p99Ms: tenths(percentile(lateMs, 0.99)),
    maxMs: tenths(Math.max(...lateMs)),
  })
}
