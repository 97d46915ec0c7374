import { expect, it } from 'vitest'
import type { Store } from '../../src/core/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { checkAgainstModel } from './model.js'

it('two memory stores agree with each other in every story', async () => {
  await checkAgainstModel({ open: async (clock) => ({ store: memory({ clock }) }), runs: 300 })
})

it('the model detects a store that does not free a key', async () => {
  const forgetful = (store: Store): Store => ({
    ...store,
    runs: {
      ...store.runs,
      settle: async (batch) =>
        Promise.all(
          batch.map(async (each) => {
            const run = await store.runs.get(each.run)
            return run?.key === undefined ? ((await store.runs.settle([each]))[0] ?? 'stale') : 'settled'
          }),
        ),
    },
  })
  const broken = checkAgainstModel({
    open: async (clock) => ({ store: forgetful(memory({ clock })) }),
    runs: 500,
    seed: 7,
  })
  await expect(broken).rejects.toThrow()
})
