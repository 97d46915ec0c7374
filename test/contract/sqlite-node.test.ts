import { sqlite } from '../../src/stores/sqlite/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { storeContract } from '../../src/testing/store-contract.js'
import { databaseSync } from '../stores/database-sync.js'
import { temporaryFile } from '../stores/temporary-file.js'

storeContract({
  name: 'sqlite on a handle of node:sqlite',
  open: async () => {
    const clock = manualClock()
    const file = temporaryFile()
    const database = databaseSync(file.path)
    const close = async () => {
      database.close()
      await file.remove()
    }
    return { store: sqlite({ database, clock }), elapse: clock.advance, close }
  },
})
