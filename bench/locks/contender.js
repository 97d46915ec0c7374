// @ts-check
/** A process whose clients want one lock, over and over: it starts when told to, and says how often each had it. */
import { createBelfry } from '../../dist/index.js'
import { storeAt } from '../harness/places.js'
import { cycleAll, lockAndUnlock } from './cycle-all.js'

const [place = '', clients = '', forMs = ''] = process.argv.slice(2)
const store = storeAt(JSON.parse(place))
await store.open()
const belfry = createBelfry({ store })
process.once('message', async () => {
  process.send?.(await cycleAll(Number(clients), Number(forMs), () => lockAndUnlock(belfry, 'one', '30s')))
  await belfry.stop()
  process.disconnect()
})
process.send?.('ready')
