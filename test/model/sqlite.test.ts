import { it } from 'vitest'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { temporaryFile } from '../stores/temporary-file.js'
import { checkAgainstModel } from './model.js'

it('the SQLite store agrees with the memory model in every story', { timeout: 120_000 }, async () => {
  await checkAgainstModel({
    open: async (clock) => {
      const file = temporaryFile()
      const store = sqlite({ path: file.path, clock })
      return { store, close: () => store.close().then(file.remove) }
    },
    runs: 100,
  })
})
