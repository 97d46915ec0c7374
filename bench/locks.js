// @ts-check
/** Locks: acquire and release, one at a time, many at once on different names, and many on one name. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createBelfry } from '../dist/index.js'
import { inFlight, median, ratioOf, takeTurns } from './harness/measure.js'
import { openRaw, rawName } from './harness/raw.js'
import { hundredths, report, reportSettings } from './harness/report.js'
import { openStore, storeSettings } from './harness/stores.js'
import { cycleAll, lockAndUnlock } from './locks/cycle-all.js'

const ROUNDS = 5
const TURN_MS = 2_000
const CONTENDED_MS = 3 * TURN_MS

const RAW_REDIS = 'raw SET NX PX, and a script that compares and deletes'

/** @type {import('./run.js').Bench} */
export default async function locks({ store = 'sqlite', n = 50, wants }) {
  reportSettings('locks', { store, clients: n, rounds: ROUNDS, turnMs: TURN_MS, ...(await storeSettings(store)) })
  for (const clients of [1, n]) await uncontended(store, store, clients, wants)
  if (store === 'postgres') {
    for (const clients of [1, n]) await uncontended(store, 'postgres in advisory mode', clients, wants)
  }
  await contended(store, n, wants)
}

/**
 * @param {string} name
 * @param {string} mode The name for `openStore`, such as `postgres in advisory mode`.
 * @param {number} clients
 * @param {(title: string) => boolean} wants
 */
async function uncontended(name, mode, clients, wants) {
  const title = `lock and unlock${mode === name ? '' : ` (${mode})`}, ${clients} in flight`
  if (!wants(title)) return
  const bench = await openStore(mode, { jumps: false })
  const belfry = createBelfry({ store: bench.store })
  const raw = await openRaw(name)
  const rates = await takeTurns(ROUNDS, {
    ours: () => inFlight(clients, TURN_MS, (client) => lockAndUnlock(belfry, `lock/${client}`)),
    raw: () => inFlight(clients, TURN_MS, async (client) => raw.lockAndUnlock(`lock/${client}`)),
  })
  report({
    bench: 'locks',
    case: title,
    store: name,
    perSecond: Math.round(median(rates.ours)),
    reference: name === 'redis' ? RAW_REDIS : `${rawName(name)}: take a row, commit, free it, commit`,
    referencePerSecond: Math.round(median(rates.raw)),
    ratio: hundredths(ratioOf(rates.ours, rates.raw)),
  })
  await raw.close()
  await belfry.stop()
  await bench.close()
}

/**
 * @param {string} name
 * @param {number} clients
 * @param {(title: string) => boolean} wants
 */
async function contended(name, clients, wants) {
  const inProcesses = name === 'postgres' ? [2] : name === 'redis' ? [1, 2] : [1]
  for (const processes of inProcesses) await contendOnOneLock(name, clients, processes, wants)
}

/**
 * @param {string} name
 * @param {number} clients
 * @param {number} processes
 * @param {(title: string) => boolean} wants
 */
async function contendOnOneLock(name, clients, processes, wants) {
  const title = `${clients} clients on one lock${processes === 1 ? '' : `, in ${processes} processes`}`
  if (!wants(title)) return
  /** @type {number[][]} */
  const rounds = []
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push(
      processes === 1 ? await contendInProcess(name, clients) : await contendInProcesses(name, clients, processes),
    )
  }
  report({
    bench: 'locks',
    case: title,
    store: name,
    perSecond: Math.round(median(rounds.map(sum)) / (CONTENDED_MS / 1_000)),
    fairness: hundredths(median(rounds.map(fairness))),
  })
}

/**
 * @param {string} name
 * @param {number} clients
 */
async function contendInProcess(name, clients) {
  const bench = await openStore(name, { jumps: false })
  const belfry = createBelfry({ store: bench.store })
  const cycles = await cycleAll(clients, CONTENDED_MS, () => lockAndUnlock(belfry, 'one', '30s'))
  await belfry.stop()
  await bench.close()
  return cycles
}

const CONTENDER = fileURLToPath(new URL('locks/contender.js', import.meta.url))

/**
 * @param {string} name
 * @param {number} clients
 * @param {number} processes
 */
async function contendInProcesses(name, clients, processes) {
  const bench = await openStore(name, { jumps: false })
  const args = [JSON.stringify(bench.location), String(clients / processes), String(CONTENDED_MS)]
  const children = Array.from({ length: processes }, () => fork(CONTENDER, args))
  await Promise.all(children.map((child) => once(child, 'message')))
  const exits = children.map((child) => once(child, 'exit'))
  const answers = children.map((child) => once(child, 'message'))
  for (const child of children) child.send('go')
  const cycles = await Promise.all(answers)
  await Promise.all(exits)
  await bench.close()
  return cycles.flatMap(([counts]) => /** @type {number[]} */ (counts))
}

/** Jain's fairness index: 1 when all clients completed equally many cycles. @param {readonly number[]} cycles */
function fairness(cycles) {
  return sum(cycles) ** 2 / (cycles.length * sum(cycles.map((own) => own ** 2)))
}

/** @param {readonly number[]} values */
function sum(values) {
  return values.reduce((all, value) => all + value, 0)
}
