import { setTimeout as sleep } from 'node:timers/promises'
import { storeContract } from '../../src/testing/store-contract.js'
import { freshPostgres } from '../servers/fresh-postgres.js'

storeContract({
  name: 'postgres',
  open: async () => {
    const { store, close } = await freshPostgres()
    return { store, close, elapse: sleep }
  },
})
