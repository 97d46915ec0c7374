// @ts-check
/**
 * One of several processes that write to one SQLite file as fast as they can, in small and large batches. The process
 * is an instance, too. At the end it reports how long its event loop was blocked and how often it lost its lease.
 */
import { createBelfry } from '../../dist/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'
import { watchEventLoop } from './event-loop.js'

const [path = '', name = '', seconds = '5'] = process.argv.slice(2)
const report = { blockedMs: 0, lost: 0, runs: 0, rounds: 0, warnings: /** @type {string[]} */ ([]) }

const belfry = createBelfry({
  store: sqlite({ path }),
  lease: '5s',
  concurrency: 100,
  logger: {
    debug() {},
    info() {},
    warn: (_, message) => report.warnings.push(message),
    error: (_, message) => report.warnings.push(message),
  },
})
const job = belfry.job(`work-${name}`, {
  keep: 'none',
  run: () => {
    report.runs += 1
  },
})
belfry.on('instance:lost', () => {
  report.lost += 1
})
await belfry.start()
// Begins only now, because loading modules and starting the instance block the event loop as well.
watchEventLoop(0, (blockedMs) => {
  report.blockedMs = Math.max(report.blockedMs, blockedMs)
})

const until = performance.now() + Number(seconds) * 1_000
while (performance.now() < until) {
  report.rounds += 1
  const every = `${1 + (report.rounds % 50)}h`
  const ids = Array.from({ length: 200 }, (_, at) => `${name}/${at}`)
  await belfry.schedules.putMany(ids.map((id) => /** @type {const} */ ([id, { every, job }])))
  await job.enqueueMany(Array.from({ length: 2_000 }, () => ({ payload: undefined })))
  await Promise.all(Array.from({ length: 50 }, (_, at) => belfry.withLock(`${name}/${at}`, async () => {})))
  if (report.rounds % 3 === 0) for (const id of ids.slice(0, 50)) await belfry.schedules.remove(id)
}
await belfry.stop()
console.log(JSON.stringify(report))
