import { sqlite } from '../../src/stores/sqlite/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { storeContract } from '../../src/testing/store-contract.js'
import { HeldWrite } from '../servers/held-write.js'
import { heldHandle } from '../stores/held-file.js'
import { temporaryFile } from '../stores/temporary-file.js'

storeContract({
  name: 'sqlite',
  open: async () => {
    const clock = manualClock()
    const file = temporaryFile()
    const held = new HeldWrite()
    const closes: (() => unknown)[] = []
    const open = async () => {
      const { handle, close } = heldHandle(file.path, held)
      closes.push(close)
      return sqlite({ database: handle, clock })
    }
    const close = async () => {
      for (const close of closes) close()
      await file.remove()
    }
    return { store: sqlite({ path: file.path, clock }), elapse: clock.advance, interrupt: held.interrupt(open), close }
  },
})
