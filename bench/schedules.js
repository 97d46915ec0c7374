// @ts-check
/** Creating schedules: in bulk, and one by one with many calls in flight. */
import { parseSchedule } from '../dist/api/schedules/schedule-input.js'
import { createBelfry } from '../dist/index.js'
import { inFlight, median, rateOf, ratioOf, takeTurns } from './harness/measure.js'
import { openRawRedisSchedules } from './harness/raw-redis-schedules.js'
import { openRawSchedules } from './harness/raw-schedules.js'
import { hundredths, report, reportSettings } from './harness/report.js'
import { openStore, storeSettings } from './harness/stores.js'
import { memoryEach } from './schedules/memory-each.js'

const ROUNDS = 3
const TURN_MS = 3_000
const CLIENTS = 50
const INPUT = { cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', job: 'noop', payload: { user: 1234, region: 'eu' } }

const RAW_REDIS = 'a raw script that writes the same structures, unread'

/**
 * @typedef {object} RawSchedules
 * @property {(count: number) => Promise<unknown>} putMany
 * @property {(id: string) => Promise<unknown>} put
 * @property {() => Promise<unknown>} close
 */

/** @type {import('./run.js').Bench} */
export default async function schedules({ store = 'postgres', n = 50_000, wants }) {
  const settings = { schedules: n, rounds: ROUNDS, batch: 1_000, clients: CLIENTS, turnMs: TURN_MS }
  reportSettings('schedules', { store, ...settings, ...(await storeSettings(store)) })
  await compare(store, 'putMany', wants, {
    ours: (belfry) => rateOf(n, () => belfry.schedules.putMany(ids(n).map((id) => [id, INPUT]))),
    raw: (raw) => rateOf(n, () => raw.putMany(n)),
  })
  let made = 0
  await compare(store, `put, ${CLIENTS} in flight`, wants, {
    ours: (belfry) => inFlight(CLIENTS, TURN_MS, () => belfry.schedules.put(`one/${made++}`, INPUT)),
    raw: (raw) => inFlight(CLIENTS, TURN_MS, () => raw.put(`one/${made++}`)),
  })
  if (store === 'redis') await memoryEach(store, 20 * n, wants)
}

/** @param {number} count */
function ids(count) {
  return Array.from({ length: count }, (_, at) => `bench/${at}`)
}

/**
 * @param {string} name
 * @param {string} title
 * @param {(title: string) => boolean} wants
 * @param {object} turns
 * @param {(belfry: import('../dist/index.js').Belfry) => Promise<number>} turns.ours
 * @param {(raw: RawSchedules) => Promise<number>} turns.raw
 */
async function compare(name, title, wants, { ours, raw }) {
  if (!wants(title)) return
  const oursOnce = async () => {
    const bench = await openStore(name)
    const belfry = createBelfry({ store: bench.store })
    belfry.job('noop', { run: () => {} })
    const perSecond = await ours(belfry)
    await bench.close()
    return perSecond
  }
  const rawOnce = async () => {
    const open = name === 'redis' ? openRawRedisSchedules : openRawSchedules
    const reference = await open(parseSchedule('raw', INPUT, 10_000))
    const perSecond = await raw(reference)
    await reference.close()
    return perSecond
  }
  /** @type {Record<string, () => Promise<number>>} */
  const measured = name === 'postgres' || name === 'redis' ? { ours: oursOnce, raw: rawOnce } : { ours: oursOnce }
  const rates = /** @type {{ ours: number[], raw?: number[] }} */ (await takeTurns(ROUNDS, measured))
  const reference = rates.raw && {
    reference: name === 'redis' ? RAW_REDIS : 'raw insert of a row as wide, with the same indexes',
    referencePerSecond: Math.round(median(rates.raw)),
    ratio: hundredths(ratioOf(rates.ours, rates.raw)),
  }
  report({ bench: 'schedules', case: title, store: name, perSecond: Math.round(median(rates.ours)), ...reference })
}
