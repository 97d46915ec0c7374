import { setTimeout as sleep } from 'node:timers/promises'
import { storeContract } from '../../src/testing/store-contract.js'
import { freshPostgres } from '../servers/fresh-postgres.js'

storeContract({
  name: 'postgres',
  open: async () => {
    const { store, close } = await freshPostgres()
    return { store, close, elapse: steadySleep() }
  },
})

/** Real time, in which the operations between two sleeps take some, too: the sleeps make up for a part of it. */
function steadySleep(): (ms: number) => Promise<void> {
  const startedAt = performance.now()
  let asked = 0
  return async (ms) => {
    const late = performance.now() - startedAt - asked
    asked += ms
    await sleep(ms - Math.min(Math.max(late, 0), ms / 5))
  }
}
