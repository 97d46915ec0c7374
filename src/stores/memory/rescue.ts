import type { RescueResult } from '../../core/store.js'
import { handOn } from './names.js'
import { takeOver } from './run-endings.js'
import type { MemoryState } from './state.js'

/** Declares instances without heartbeats dead, and takes over their runs. */
export function rescueRuns(state: MemoryState, limit: number): RescueResult {
  const now = state.clock.now()
  let [rescued, lost] = [0, 0]
  for (const instance of state.instances.values()) {
    if (instance.expiresAt > now) continue
    instance.dead = true
    for (const run of instance.running) {
      if (rescued + lost >= limit) break
      if (takeOver(state, run, now, true) === 'lost') lost += 1
      else rescued += 1
    }
    if (instance.running.size === 0) state.instances.delete(instance.info.id)
  }
  // Locks expire without an operation, so their waiters are served here.
  for (const name of state.blocked) state.touchedNames.add(name)
  handOn(state, now)
  return { rescued, lost }
}
