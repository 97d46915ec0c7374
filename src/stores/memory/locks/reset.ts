import { takeOver } from '../runs/transitions.js'
import type { MemoryState } from '../schema/state.js'
import { dropHolder } from './release.js'

/** Takes a name from all its holders. A run that held it is taken over, although its instance may live. */
export function resetLease(state: MemoryState, name: string): number {
  const holders = [...(state.names.get(name)?.holders.values() ?? [])]
  for (const lease of holders) {
    if (lease.run === undefined) dropHolder(state, lease)
    else takeOver(state, lease.run, false)
  }
  if (holders.length > 0) state.wakes.add('attempts')
  return holders.length
}
