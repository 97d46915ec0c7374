// @ts-check
/** One process of Belfry, from the built package, that delivers what is due to a sink until it is killed. */
import { createBelfry } from '../../dist/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

/** @type {{ file: string, ordered: boolean, sink: import('./cluster.js').SinkRecipe }} */
const { file, ordered, sink } = JSON.parse(process.argv[2] ?? '')
const make = (await import(new URL(`../../dist/sinks/${sink.file}`, import.meta.url).href))[sink.make]

const log = (/** @type {string} */ level) => (/** @type {unknown} */ fields, /** @type {string} */ message) =>
  console.log(JSON.stringify({ at: Date.now(), level, message, fields }))
const logger = { debug() {}, info: log('info'), warn: log('warn'), error: log('error') }
const belfry = createBelfry({
  store: sqlite({ path: file }),
  sinks: { out: make({ ...sink.options, ordered }) },
  lease: '5s',
  poll: '100ms',
  logger,
})
await belfry.start()
