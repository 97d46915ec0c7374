// @ts-check
/**
 * Measures whether a tick costs the same among few schedules as among many. The same number of ticks is due in both
 * cases, spread evenly over all stored schedules.
 */

import { parseSchedule } from '../dist/api/schedules/schedule-input.js'
import { plan } from '../dist/core/schedules/plan.js'
import { median, rateOf } from './harness/measure.js'
import { withClient } from './harness/postgres.js'
import { redisMemory } from './harness/redis.js'
import { hundredths, report, reportSettings } from './harness/report.js'
import { openStore, storeSettings } from './harness/stores.js'

const DUE = 30_000
const ROUNDS = 6
const BATCH = 1_000
const HOUR_MS = 3_600_000

/** @type {import('./run.js').Bench} */
export default async function scale({ store = 'postgres', n = store === 'redis' ? 3_000_000 : 300_000 }) {
  const due = Math.min(DUE, n / 10)
  reportSettings('scale', { store, schedules: n, due, rounds: ROUNDS, batch: BATCH, ...(await storeSettings(store)) })
  const few = await fill(store, due, due)
  const before = store === 'redis' ? await redisMemory() : 0
  const many = await fill(store, n, due)
  const used = store === 'redis' ? { bytesEach: Math.round(((await redisMemory()) - before) / n) } : {}
  /** @type {{ few: number[], many: number[] }} */
  const rates = { few: [], many: [] }
  for (let round = 0; round < ROUNDS; round += 1) {
    rates.few.push(await recordDue(few, due))
    rates.many.push(await recordDue(many, due))
  }
  // The first round is not counted: it reads pages and code for the first time.
  const [ours, reference] = [rates.many.slice(1), rates.few.slice(1)]
  report({
    bench: 'scale',
    case: `${due} due among ${n}`,
    store,
    perSecond: Math.round(median(ours)),
    reference: `${due} due among ${due}`,
    referencePerSecond: Math.round(median(reference)),
    ratio: hundredths(median(ours.map((rate, round) => rate / (reference[round] ?? Number.NaN)))),
    rounds: rates.many.map((rate, round) => hundredths(rate / (rates.few[round] ?? Number.NaN))),
    ...(await sizes(many)),
    ...used,
  })
  await few.close()
  await many.close()
}

/**
 * Stores `count` schedules of which `due`, evenly spread, tick every hour and the others once a year.
 * @param {string} name
 * @param {number} count
 * @param {number} due
 */
async function fill(name, count, due) {
  const bench = await openStore(name)
  const every = count / due
  for (let at = 0; at < count; at += BATCH) {
    const writes = Array.from({ length: Math.min(BATCH, count - at) }, (_, index) => {
      const id = `scale/${at + index}`
      const timeline = (at + index) % every < 1 ? { every: '1h' } : { every: '365d' }
      return { id, definition: parseSchedule(id, { ...timeline, job: 'noop', keep: 'none' }, 10_000) }
    })
    await bench.store.schedules.put(writes)
  }
  if (bench.schema !== undefined) await withClient((client) => client.query(`vacuum analyze ${bench.schema}.schedules`))
  return bench
}

/**
 * @param {import('./harness/stores.js').BenchStore} bench
 * @param {number} due
 */
async function recordDue(bench, due) {
  await bench.skip(HOUR_MS)
  let recorded = 0
  const perSecond = await rateOf(due, async () => {
    for (let left = true; left; ) {
      const result = await bench.store.schedules.advance({ limit: BATCH, lookaheadMs: 0, plan })
      recorded += result.recorded
      // A call may record fewer than are due, for example when the server does not know the script yet.
      left = result.nextDueAt !== undefined && result.nextDueAt <= result.now
    }
  })
  if (recorded !== due) throw new Error(`${recorded} ticks were recorded, not ${due}`)
  return perSecond
}

/** @param {import('./harness/stores.js').BenchStore} bench */
async function sizes({ schema }) {
  if (schema === undefined) return {}
  const size = `select pg_total_relation_size('${schema}.schedules') + pg_total_relation_size('${schema}.definitions') as bytes,
    (select count(*) from ${schema}.schedules) as count`
  const { rows } = await withClient((client) => client.query(size))
  return { bytesEach: Math.round(Number(rows[0].bytes) / Number(rows[0].count)) }
}
