/** The store as the beat thread opens it: it beats and renews leases over one connection that stays open. */

import { systemClock } from '../../../core/clock.js'
import type { BeatStore } from '../../../core/instances/beat-store.js'
import { beatInstance } from '../instances/beat.js'
import { renewLeases } from '../locks/renew.js'
import { Database } from './database.js'
import { poolOf } from './pool.js'
import { unproven } from './proof-of-life.js'
import type { BeatStoreOptions } from './reopen.js'
import { ServerIdentity } from './server-identity.js'

/** The beat thread calls this with the options that `reopen` returned. */
export function openBeatStore(options: unknown): BeatStore {
  const { schema, client, proof, identity } = options as BeatStoreOptions
  const pool = poolOf({ options: { ...client, max: 1, idleTimeoutMillis: 0 } })
  const db = new Database({
    ...{ pool: pool.used, schema, clock: systemClock },
    identity: new ServerIdentity(identity),
    ...(proof === undefined ? {} : { proof: sharedProof(proof) }),
  })
  let opened: Promise<void> | undefined
  const open = () => {
    opened ??= db.checkServer().catch((error: unknown) => {
      opened = undefined
      throw error
    })
    return opened
  }
  return {
    open,
    beat: async (request) => {
      await open()
      return beatInstance(db, request)
    },
    renew: async (requests) => {
      await open()
      return renewLeases(db, requests)
    },
    close: () => pool.leave(),
  }
}

/**
 * Reads the number that proves the life of the main thread's session. Rows that the beat thread renews keep that
 * number.
 */
function sharedProof(memory: SharedArrayBuffer) {
  const shared = new Int32Array(memory)
  return {
    async number(): Promise<number> {
      const number = Atomics.load(shared, 0)
      if (number === 0) throw unproven('the connection that proves it is broken')
      return number
    },
    holds: (number: number) => Atomics.load(shared, 0) === number,
  }
}
