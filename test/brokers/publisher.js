// @ts-check
/** A Belfry process on the built package that delivers due messages to a sink until it is killed. */
import { createBelfry } from '../../dist/index.js'
import { openLoadStore } from './load-store.js'

/** @type {{ store: import('./load-store.js').LoadStore, ordered: boolean, sink: import('./cluster.js').SinkRecipe }} */
const { store, ordered, sink } = JSON.parse(process.argv[2] ?? '')
const make = (await import(new URL(`../../dist/sinks/${sink.file}`, import.meta.url).href))[sink.make]

const log = (/** @type {string} */ level) => (/** @type {unknown} */ fields, /** @type {string} */ message) =>
  console.log(JSON.stringify({ at: Date.now(), level, message, fields }))
const logger = { debug() {}, info: log('info'), warn: log('warn'), error: log('error') }
const belfry = createBelfry({
  store: openLoadStore(store),
  sinks: { out: make({ ...sink.options, ordered }) },
  poll: '100ms',
  logger,
})
// Not every broker records when it stored a message, so this process measures the longest delay of an acknowledgement
// and the longest time without one.
const times = { maxMs: 0, silentMs: 0 }
let last = Number.NaN
belfry.on('run:succeeded', ({ run }) => {
  const now = Date.now()
  times.maxMs = Math.max(times.maxMs, now - Number(run.tick))
  if (!Number.isNaN(last)) times.silentMs = Math.max(times.silentMs, now - last)
  last = now
})
setInterval(() => console.log(JSON.stringify({ times })), 1_000).unref()
process.once('SIGTERM', async () => {
  await belfry.stop({ grace: '1s' })
  process.exit(0)
})
await belfry.start()
