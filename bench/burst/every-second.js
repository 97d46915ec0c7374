// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { createBelfry } from '../../dist/index.js'
import { reportLateness } from '../harness/lateness.js'
import { openStore } from '../harness/stores.js'

const SETTLING_MS = 3_000
const PATIENCE_MS = 60_000

/**
 * @param {string} store
 * @param {number} schedules
 * @param {number} seconds
 * @param {number} rounds
 * @param {(title: string) => boolean} wants
 */
export async function everySecond(store, schedules, seconds, rounds, wants) {
  const title = `${schedules} schedules every second for ${seconds} s: start after tick`
  if (!wants(title)) return
  /** @type {number[][]} */
  const lateMs = []
  for (let round = 0; round < rounds; round += 1) lateMs.push(await watch(store, schedules, seconds))
  const expected = schedules * seconds * rounds
  await reportLateness({ bench: 'burst', case: title, store, expected, ran: lateMs.flat().length }, lateMs)
}

/**
 * The lateness of every tick in a range of whole seconds. Waits until all of them have run.
 * @param {string} name
 * @param {number} schedules
 * @param {number} seconds
 */
async function watch(name, schedules, seconds) {
  const bench = await openStore(name)
  const belfry = createBelfry({ store: bench.store, concurrency: 2 * schedules })
  /** @type {number[]} */
  const lateMs = []
  let from = Number.POSITIVE_INFINITY
  belfry.job('note', {
    run: ({ tick }) => {
      const at = tick.getTime()
      if (at >= from && at < from + seconds * 1_000) lateMs.push(Date.now() - at)
    },
  })
  /** @type {[string, { cron: string, job: string }][]} */
  const inputs = Array.from({ length: schedules }, (_, at) => [`each/${at}`, { cron: '* * * * * *', job: 'note' }])
  await belfry.schedules.putMany(inputs)
  await belfry.start()
  from = Math.ceil((Date.now() + SETTLING_MS) / 1_000) * 1_000
  const until = from + seconds * 1_000
  while (lateMs.length < schedules * seconds && Date.now() < until + PATIENCE_MS) await sleep(100)
  await belfry.stop()
  await bench.close()
  return lateMs
}
