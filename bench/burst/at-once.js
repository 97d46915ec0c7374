// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { createBelfry } from '../../dist/index.js'
import { reportLateness } from '../harness/lateness.js'
import { openStore } from '../harness/stores.js'

const AHEAD_MS = 3_000

/**
 * @param {string} store
 * @param {number} schedules
 * @param {number} rounds
 * @param {(title: string) => boolean} wants
 */
export async function burstAtOnce(store, schedules, rounds, wants) {
  const title = `${schedules} schedules at one instant: start after tick`
  if (!wants(title)) return
  /** @type {number[][]} */
  const lateMs = []
  for (let round = 0; round < rounds; round += 1) lateMs.push(await startAll(store, schedules))
  await reportLateness({ bench: 'burst', case: title, store }, lateMs)
}

/**
 * @param {string} name
 * @param {number} schedules
 */
async function startAll(name, schedules) {
  const bench = await openStore(name)
  const belfry = createBelfry({ store: bench.store, concurrency: schedules })
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
  await bench.close()
  return lateMs
}
