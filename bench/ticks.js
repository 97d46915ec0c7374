// @ts-check
/** Recording ticks: one tick of each schedule is due, and is recorded with the cursor that moves behind it. */
import { plan } from '../dist/core/plan.js'
import { makeBacklog } from './harness/backlog.js'
import { race } from './harness/measure.js'
import { openRaw, RAW_BATCH } from './harness/raw-sqlite.js'
import { report, reportSettings, hundredths } from './harness/report.js'
import { openStore } from './harness/stores.js'

const BATCH = 1_000
const PACE = { rounds: 5, turnMs: 1_000, warmupMs: 1_000 }

/** @type {import('./run.js').Bench} */
export default async function ticks({ store: name = 'sqlite', n = 10_000 }) {
  reportSettings('ticks', { store: name, schedules: n, batch: BATCH, rawBatch: RAW_BATCH, ...PACE })
  const bench = await openStore(name)
  await makeBacklog(bench, { schedules: n, each: 0, job: 'noop', keep: 'all' })
  const raw = openRaw(n)
  let longestMs = 0

  async function recordTicks() {
    await bench.skip(1_000)
    let recorded = 0
    for (;;) {
      const result = await bench.store.schedules.advance({ limit: BATCH, lookaheadMs: 0, plan })
      recorded += result.recorded
      if (result.schedules < BATCH) return recorded
    }
  }

  const watch = watchEventLoop((ms) => {
    longestMs = Math.max(longestMs, ms)
  })
  const ours = await race([{ name: 'belfry', batch: recordTicks }], PACE)
  watch()
  const rates = await race(
    [
      { name: 'belfry', batch: recordTicks },
      { name: 'raw', batch: () => raw.recordTicks() },
    ],
    PACE,
  )
  const perSecond = rates.get('belfry') ?? 0
  const referencePerSecond = rates.get('raw') ?? 0
  report({
    bench: 'ticks',
    case: 'one tick of each schedule',
    store: name,
    perSecond: Math.round(perSecond),
    reference: 'raw prepared statements on SQLite: insert a run, move a cursor',
    referencePerSecond: Math.round(referencePerSecond),
    ratio: hundredths(perSecond / referencePerSecond),
    alonePerSecond: Math.round(ours.get('belfry') ?? 0),
    eventLoopBlockedMaxMs: Math.round(longestMs),
  })
  raw.close()
  await bench.close()
}

/**
 * Tells how late the event loop comes to its timers.
 * @param {(lateMs: number) => void} tell
 */
function watchEventLoop(tell) {
  let expected = performance.now() + 5
  const timer = setInterval(() => {
    tell(performance.now() - expected)
    expected = performance.now() + 5
  }, 5)
  return () => clearInterval(timer)
}
