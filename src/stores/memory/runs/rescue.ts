import type { RescueResult } from '../../../core/store.js'
import type { MemoryState } from '../schema/state.js'
import { takeOver } from './transitions.js'

/** Declares instances dead whose beats stopped, and takes over what they ran. */
export function rescueRuns(state: MemoryState, limit: number): RescueResult {
  let [rescued, lost] = [0, 0]
  for (const instance of state.instances.values()) {
    if (instance.expiresAt > state.now) continue
    instance.dead = true
    for (const run of instance.running) {
      if (rescued + lost >= limit) break
      if (takeOver(state, run, true) === 'lost') lost += 1
      else rescued += 1
    }
    if (instance.running.size === 0) state.instances.delete(instance.info.id)
  }
  // Locks expire without an operation, so the waiters of all names are served here.
  for (const name of state.blocked) state.freedNames.add(name)
  return { rescued, lost }
}
