// @ts-check
/** A process that holds a lock, or the key of an exclusive run, until it ends, and reports when it has it. */
import { createBelfry } from '../../dist/index.js'
import { postgres } from '../../dist/stores/postgres/index.js'

const [url = '', schema = '', liveness = '', what = ''] = process.argv.slice(2)
const store = postgres({ url, schema, liveness: liveness === 'advisory' ? 'advisory' : 'lease' })
const belfry = createBelfry({ store, lease: '60s', poll: '50ms' })

async function hold() {
  process.stdout.write('held\n')
  await new Promise(() => {})
}

if (what === 'run') {
  const job = belfry.job('long', { exclusive: { name: 'shared' }, run: hold })
  await belfry.start()
  await job.enqueue()
} else {
  await belfry.start()
  await belfry.withLock('a', hold, { ttl: '60s' })
}
