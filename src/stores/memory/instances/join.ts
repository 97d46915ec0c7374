import type { InstanceInfo } from '../../../core/instances/instance.js'
import { frozenCopy } from '../runs/run-codec.js'
import type { MemoryState } from '../schema/state.js'
import { extendInstance } from './beat.js'
import { noteAlive } from './declarations.js'

/** A live instance that joins again only extends its lease. One that was declared dead starts over. */
export function joinInstance(state: MemoryState, given: InstanceInfo, leaseMs: number): { readonly now: number } {
  const { now } = state
  const info = frozenCopy(given)
  const known = state.instances.get(info.id)
  if (known !== undefined && !known.dead) extendInstance(state, known, leaseMs)
  else {
    state.instances.set(info.id, {
      ...{ info, joinedAt: now, beatAt: now, expiresAt: now + leaseMs },
      ...{ dead: false, running: new Set(), claimsSettled: Number.NEGATIVE_INFINITY },
    })
  }
  for (const job of info.jobs) state.jobs.set(job.name, job)
  noteAlive(state, info)
  return { now }
}
