// @ts-check
/** Drains a backlog of empty runs through the whole engine, in separate processes. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { median, rateOf, ratioOf, takeTurns } from '../harness/measure.js'
import { checkpoint } from '../harness/postgres.js'
import { openRawServer } from '../harness/raw.js'
import { hundredths, report } from '../harness/report.js'
import { openStore } from '../harness/stores.js'

const ROUNDS = 3
export const CONCURRENCY = 2_000

const DRAINER = fileURLToPath(new URL('drainer.js', import.meta.url))

/**
 * @param {string} store
 * @param {number} n
 * @param {(title: string) => boolean} wants
 */
export async function drained(store, n, wants) {
  for (const keep of /** @type {const} */ (['all', 'none'])) {
    const title = `backlog drained, keep ${keep}`
    if (!wants(title)) continue
    const rates = await takeTurns(ROUNDS, {
      one: () => drain(store, n, keep, 1),
      two: () => drain(store, n, keep, 2),
      raw: () => drainRaw(store, n, keep, 1),
      rawTwice: () => drainRaw(store, n, keep, 2),
    })
    const reference = `raw claim and ${keep === 'all' ? 'complete' : 'delete'} on ${store === 'redis' ? 'Redis, in Lua' : 'Postgres'}, 1,000 at a time`
    const line = { bench: 'runs', store, reference, referencePerSecond: Math.round(median(rates.raw)) }
    report({
      ...{ ...line, case: title, perSecond: Math.round(median(rates.one)) },
      ratio: hundredths(ratioOf(rates.one, rates.raw)),
      twoRawLoopsPerSecond: Math.round(median(rates.rawTwice)),
    })
    report({
      ...{ ...line, case: `${title}, two processes`, perSecond: Math.round(median(rates.two)) },
      reference: 'one process',
      referencePerSecond: Math.round(median(rates.one)),
      ratio: hundredths(ratioOf(rates.two, rates.one)),
    })
  }
}

/**
 * @param {string} name
 * @param {number} n
 * @param {'all' | 'none'} keep
 * @param {number} processes
 */
async function drain(name, n, keep, processes) {
  const bench = await openStore(name)
  /** @type {import('../../dist/core/runs/run.js').NewRun} */
  const run = { target: { job: 'noop' }, origin: 'enqueue', payload: null, priority: 0, keep }
  const batch = Array.from({ length: 1_000 }, () => run)
  for (let made = 0; made < n; made += batch.length) await bench.store.runs.enqueue(batch)
  const args = [JSON.stringify(bench.location), String(CONCURRENCY), keep]
  const children = Array.from({ length: processes }, () => fork(DRAINER, args))
  await Promise.all(children.map((child) => once(child, 'message')))
  if (name === 'postgres') await checkpoint()
  const done = children.map(() => 0)
  const finished = new Promise((resolve) => {
    for (const [at, child] of children.entries()) {
      child.on('message', (count) => {
        done[at] = Number(count)
        if (done.reduce((sum, own) => sum + own, 0) >= n) resolve(undefined)
      })
    }
  })
  const perSecond = await rateOf(n, async () => {
    for (const child of children) child.send('go')
    await finished
  })
  const gone = children.map((child) => once(child, 'exit'))
  for (const child of children) child.send('stop')
  await Promise.all(gone)
  await bench.close()
  return perSecond
}

/**
 * @param {string} name
 * @param {number} n
 * @param {'all' | 'none'} keep
 * @param {number} loops
 */
async function drainRaw(name, n, keep, loops) {
  const raw = await openRawServer(name)
  await raw.enqueueMany(n)
  if (name === 'postgres') await checkpoint()
  let done = 0
  const loop = async () => {
    for (let count = 1; count > 0; done += count) count = await raw.drain(keep)
  }
  const perSecond = await rateOf(n, () => Promise.all(Array.from({ length: loops }, loop)))
  if (done !== n) throw new Error(`${done} of ${n} runs were drained`)
  await raw.close()
  return perSecond
}
