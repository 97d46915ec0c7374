/** The beats and renewals of the Postgres store, from the beat thread: over one connection, which stays open. */
import type { BeatStore } from '../../../core/beat-store.js'
import { systemClock } from '../../../core/clock.js'
import { beatInstance } from '../instances.js'
import { renewLeases } from '../leases.js'
import { checkServer } from './check-server.js'
import { Database } from './database.js'
import { newPool } from './driver.js'
import { poolOf } from './pool.js'
import { unproven } from './proof-of-life.js'
import type { BeatStoreOptions } from './reopen.js'

/** Called by the beat thread with what `reopen` made. */
export function openBeatStore(options: unknown): BeatStore {
  const { schema, client, proof } = options as BeatStoreOptions
  const pool = poolOf({ pool: newPool({ ...client, max: 1, idleTimeoutMillis: 0 }) })
  const db = new Database({
    ...{ pool: pool.used, schema, clock: systemClock, announce: () => {} },
    ...(proof === undefined ? {} : { proof: sharedProof(proof) }),
  })
  let looked: Promise<void> | undefined
  const open = () => {
    looked ??= checkServer(db)
      .then(() => db.findSession())
      .catch((error: unknown) => {
        looked = undefined
        throw error
      })
    return looked
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
    close: async () => {
      await pool.leave()
      await pool.used.end()
    },
  }
}

/** The number that the main thread's session proves: rows that are renewed go on to carry it. */
function sharedProof(memory: SharedArrayBuffer) {
  const word = new Int32Array(memory)
  return {
    async number(): Promise<number> {
      const number = Atomics.load(word, 0)
      if (number === 0) throw unproven('the connection that proves it is broken')
      return number
    },
    holds: (number: number) => Atomics.load(word, 0) === number,
  }
}
