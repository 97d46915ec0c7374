import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { storeContract } from '../../src/testing/store-contract.js'

storeContract({
  name: 'memory',
  open: async () => {
    const clock = manualClock()
    return { store: memory({ clock }), elapse: clock.advance }
  },
})
