// @ts-check
/** Locks: acquire and release, alone, many at a time on names of their own, and many on one name. */
import { createBelfry } from '../dist/index.js'
import { median } from './harness/measure.js'
import { openRawSqlite } from './harness/raw-sqlite.js'
import { hundredths, report, reportSettings } from './harness/report.js'
import { openStore } from './harness/stores.js'

const ROUNDS = 3
const TURN_MS = 2_000

/** @type {import('./run.js').Bench} */
export default async function locks({ store = 'sqlite', n = 50 }) {
  reportSettings('locks', { store, clients: n, rounds: ROUNDS, turnMs: TURN_MS })
  for (const clients of [1, n]) await uncontended(store, clients)
  await contended(store, n)
}

/**
 * @param {string} name
 * @param {number} clients
 */
async function uncontended(name, clients) {
  const bench = await openStore(name)
  const belfry = createBelfry({ store: bench.store })
  const raw = openRawSqlite()
  /** @type {{ ours: number[], raw: number[] }} */
  const rates = { ours: [], raw: [] }
  for (let round = 0; round < ROUNDS; round += 1) {
    const cycles = await cycleAll(clients, TURN_MS, (client) => lockAndUnlock(belfry, `lock/${client}`))
    rates.ours.push(sum(cycles) / (TURN_MS / 1_000))
    const startedAt = performance.now()
    let done = 0
    for (; performance.now() - startedAt < TURN_MS; done += 1) raw.lockAndUnlock('lock')
    rates.raw.push((done / (performance.now() - startedAt)) * 1_000)
  }
  report({
    bench: 'locks',
    case: `lock and unlock, ${clients} in flight`,
    store: name,
    perSecond: Math.round(median(rates.ours)),
    reference: 'raw prepared statements on SQLite: insert, commit, delete, commit',
    referencePerSecond: Math.round(median(rates.raw)),
    ratio: hundredths(median(rates.ours) / median(rates.raw)),
  })
  raw.close()
  await belfry.stop()
}

/**
 * @param {string} name
 * @param {number} clients
 */
async function contended(name, clients) {
  const bench = await openStore(name)
  const belfry = createBelfry({ store: bench.store })
  const cycles = await cycleAll(clients, 3 * TURN_MS, () => lockAndUnlock(belfry, 'one', '30s'))
  report({
    bench: 'locks',
    case: `${clients} clients on one lock`,
    store: name,
    perSecond: Math.round(sum(cycles) / ((3 * TURN_MS) / 1_000)),
    fairness: hundredths(sum(cycles) ** 2 / (cycles.length * sum(cycles.map((own) => own ** 2)))),
  })
  await belfry.stop()
}

/**
 * @param {import('../dist/index.js').Belfry} belfry
 * @param {string} name
 * @param {string} [wait]
 */
async function lockAndUnlock(belfry, name, wait) {
  const lock = await belfry.lock(name, wait === undefined ? {} : { wait })
  if (lock === undefined) return false
  await lock.release()
  return true
}

/**
 * How often each client came round.
 * @param {number} clients
 * @param {number} forMs
 * @param {(client: number) => Promise<boolean>} cycle
 */
function cycleAll(clients, forMs, cycle) {
  const end = performance.now() + forMs
  return Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      let done = 0
      while (performance.now() < end) if (await cycle(client)) done += 1
      return done
    }),
  )
}

/** @param {readonly number[]} values */
function sum(values) {
  return values.reduce((all, value) => all + value, 0)
}
