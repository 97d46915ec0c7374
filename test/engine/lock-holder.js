// @ts-check
/**
 * A process that takes a lock and never calls `stop()`. It releases the lock, or with the third argument waits until it
 * loses the lock.
 */
import { createBelfry } from '../../dist/index.js'
import { sqlite } from '../../dist/stores/sqlite/index.js'

const [path = '', ttl = '', keeps] = process.argv.slice(2)
const belfry = createBelfry({ store: sqlite({ path }) })
const first = await belfry.lock('a', { ttl })
await first?.release()
const lock = await belfry.lock('a', { ttl })
console.log('held')
if (keeps) await new Promise((resolve) => lock?.signal.addEventListener('abort', resolve))
else await lock?.release()
console.log(keeps ? 'lost' : 'released')
