import { takeOver } from '../runs/transitions.js'
import type { MemoryState } from '../schema/state.js'

/** What the instance still runs is taken over at once. */
export function leaveInstance(state: MemoryState, id: string): void {
  for (const run of [...(state.instances.get(id)?.running ?? [])]) takeOver(state, run, false)
  state.instances.delete(id)
}
