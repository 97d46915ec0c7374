/** The beats and renewals of the SQLite store, from the beat thread: over a handle of its own on the same file. */
import type { BeatStore } from '../../core/beat-store.js'
import { sqlite } from './index.js'
import type { SqliteOptions } from './sqlite-options.js'

/** Called by the beat thread with the options of a file. */
export function openBeatStore(options: unknown): BeatStore {
  const { instances, leases, open, close } = sqlite(options as SqliteOptions)
  return { open, beat: instances.beat, renew: leases.renew, close }
}
