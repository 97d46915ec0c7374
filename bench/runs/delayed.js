// @ts-check
/** Enqueues delayed runs at a fixed rate, and measures how late each starts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createBelfry } from '../../dist/index.js'
import { reportLateness } from '../harness/lateness.js'
import { openStore } from '../harness/stores.js'

const ROUNDS = 3
const PER_SECOND = 1_000
const FOR_MS = 10_000
const DELAY_MS = 2_000
const STEP_MS = 10

/**
 * @param {string} store
 * @param {(title: string) => boolean} wants
 */
export async function delayed(store, wants) {
  const title = `delayed runs at ${PER_SECOND} a second: start after the instant`
  if (!wants(title)) return
  /** @type {number[][]} */
  const rounds = []
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await startLate(store))
  await reportLateness({ bench: 'runs', case: title, store, ran: rounds.flat().length }, rounds)
}

/** @param {string} name */
async function startLate(name) {
  const bench = await openStore(name)
  const belfry = createBelfry({ store: bench.store, concurrency: PER_SECOND })
  /** @type {number[]} */
  const lateMs = []
  const job = belfry.job('note', {
    run: ({ run }) => void lateMs.push(Date.now() - run.createdAt - DELAY_MS),
  })
  await belfry.start()
  const count = (PER_SECOND * FOR_MS) / 1_000
  const startedAt = performance.now()
  const each = (PER_SECOND * STEP_MS) / 1_000
  /** @type {Promise<unknown>[]} */
  const made = []
  while (made.length < count) {
    const due = Math.min(Math.floor((performance.now() - startedAt) / STEP_MS + 1) * each, count)
    while (made.length < due) made.push(job.enqueue(undefined, { in: DELAY_MS }))
    await sleep(STEP_MS)
  }
  await Promise.all(made)
  while (lateMs.length < count) await sleep(50)
  await belfry.stop()
  await bench.close()
  return lateMs
}
