// @ts-check
/** A process that drains a backlog. It reports `ready`, starts on a message, and reports how many runs it has completed. */
import { createBelfry } from '../../dist/index.js'
import { storeAt } from '../harness/store-locations.js'

const [location = '', concurrency = '1000', keep = 'all'] = process.argv.slice(2)
const store = storeAt(JSON.parse(location))
const belfry = createBelfry({ store, concurrency: Number(concurrency) })
let done = 0
let reported = 0
belfry.job('noop', { run: () => {}, keep: keep === 'none' ? 'none' : 'all' })
belfry.on('run:succeeded', () => {
  done += 1
})
const timer = setInterval(() => {
  if (done === reported) return
  reported = done
  process.send?.(done)
}, 5)
process.on('message', async (message) => {
  if (message === 'go') return belfry.start()
  clearInterval(timer)
  await belfry.stop()
  process.disconnect()
})
await store.open()
process.send?.('ready')
