import type { BeatRequest, BeatResult } from '../../../core/instances/instance.js'
import { takeOver } from '../runs/transitions.js'
import type { InstanceRecord, MemoryState } from '../schema/state.js'
import { noteAlive } from './declarations.js'

/**
 * Extends the instance's lease, and with it the keys of its runs. The beat lists the attempts that the instance runs. If the
 * list lacks a run that the store started for an answered claim, the reply never arrived: the run is given back.
 */
export function beatInstance(state: MemoryState, request: BeatRequest): BeatResult {
  const { attempts, claimsSettled, leaseMs } = request
  const instance = state.instances.get(request.instance)
  if (instance === undefined || instance.dead) {
    return { alive: false, lost: attempts.map(({ run }) => run), cancel: [], now: state.now }
  }
  const lastBeatAt = instance.beatAt
  extendInstance(state, instance, leaseMs)
  noteAlive(state, instance.info)
  instance.claimsSettled = Math.max(instance.claimsSettled, claimsSettled)
  const isOwn = ({ run: id, token }: (typeof attempts)[number]) => {
    const run = state.runs.get(id)
    return run?.owner === instance && run.token === token
  }
  const own = new Set(attempts.filter(isOwn).map(({ run }) => run))
  for (const run of [...instance.running]) {
    if (run.claim <= claimsSettled && !own.has(run.id)) takeOver(state, run, false)
  }
  return {
    alive: true,
    lost: attempts.filter(({ run }) => !own.has(run)).map(({ run }) => run),
    cancel: [...own].filter((id) => state.runs.get(id)?.cancelRequested),
    lastBeatAt,
    now: state.now,
  }
}

export function extendInstance({ now }: MemoryState, instance: InstanceRecord, leaseMs: number): void {
  instance.beatAt = now
  instance.expiresAt = now + leaseMs
}
