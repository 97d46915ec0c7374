/** What the beat thread loads: beats and renewals, over a handle of its own on the same file. */
import type { BeatStore } from '../../../core/instances/beat-store.js'
import { sqlite } from '../index.js'
import type { SqliteOptions } from '../options.js'

export function openBeatStore(options: unknown): BeatStore {
  const { instances, leases, open, close } = sqlite(options as SqliteOptions)
  return { open, beat: instances.beat, renew: leases.renew, close }
}
