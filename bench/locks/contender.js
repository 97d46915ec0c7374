// @ts-check
/**
 * A process whose clients repeatedly acquire one lock. It starts on a message, and reports how often each client
 * acquired the lock.
 */
import { createBelfry } from '../../dist/index.js'
import { storeAt } from '../harness/store-locations.js'
import { cycleAll, lockAndUnlock } from './cycle-all.js'

const [location = '', clients = '', forMs = ''] = process.argv.slice(2)
const store = storeAt(JSON.parse(location))
await store.open()
const belfry = createBelfry({ store })
process.once('message', async () => {
  process.send?.(await cycleAll(Number(clients), Number(forMs), () => lockAndUnlock(belfry, 'one', '30s')))
  await belfry.stop()
  process.disconnect()
})
process.send?.('ready')
