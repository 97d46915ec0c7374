// @ts-check
/** The delay from a tick's instant to its start: many ticks at one instant, and many every second. */
import { burstAtOnce } from './burst/at-once.js'
import { everySecond } from './burst/every-second.js'
import { reportSettings } from './harness/report.js'
import { storeSettings } from './harness/stores.js'

const ROUNDS = 3

/** @type {import('./run.js').Bench} */
export default async function burst({
  store = 'sqlite',
  n = store === 'postgres' || store === 'redis' ? 10_000 : 1_000,
  wants,
}) {
  reportSettings('burst', { store, schedules: n, rounds: ROUNDS, concurrency: n, ...(await storeSettings(store)) })
  await burstAtOnce(store, n, ROUNDS, wants)
  await everySecond(store, 1_000, 30, ROUNDS, wants)
  if (n > 1_000) await everySecond(store, n, 60, ROUNDS, wants)
}
