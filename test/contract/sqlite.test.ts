import { sqlite } from '../../src/stores/sqlite/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { storeContract } from '../../src/testing/store-contract.js'
import { temporaryFile } from '../stores/temporary-file.js'

storeContract({
  name: 'sqlite',
  open: async () => {
    const clock = manualClock()
    const file = temporaryFile()
    return { store: sqlite({ path: file.path, clock }), elapse: clock.advance, close: file.remove }
  },
})
