// @ts-check
/** A process that holds something for as long as it lives, and says so: a lock, or the key of an exclusive run. */
import { createBelfry } from '../../dist/index.js'
import { postgres } from '../../dist/stores/postgres/index.js'

const [url = '', schema = '', liveness = '', what = ''] = process.argv.slice(2)
const store = postgres({ url, schema, liveness: liveness === 'advisory' ? 'advisory' : 'lease' })
const belfry = createBelfry({ store, lease: '60s', poll: '50ms' })
const job = belfry.job('long', {
  exclusive: { name: 'shared' },
  run: async () => {
    process.stdout.write('held\n')
    await new Promise(() => {})
  },
})
await belfry.start()
if (what === 'run') await job.enqueue()
else {
  await belfry.lock('a', { ttl: '60s' })
  process.stdout.write('held\n')
}
