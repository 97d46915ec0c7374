import type { BeatRequest, BeatResult, Instance, InstanceInfo, JobInfo } from '../../core/instance.js'
import type { DeclaredSet } from '../../core/store.js'
import { handOn } from './names.js'
import { takeOver } from './run-endings.js'
import { frozenCopy, type RunRecord } from './run-record.js'
import type { InstanceRecord, MemoryState } from './state.js'

export function joinInstance(state: MemoryState, given: InstanceInfo, leaseMs: number): { readonly now: number } {
  const now = state.clock.now()
  const info = frozenCopy(given)
  const known = state.instances.get(info.id)
  if (known !== undefined && !known.dead) {
    known.expiresAt = now + leaseMs
    known.beatAt = now
  } else {
    state.instances.set(info.id, {
      ...{ info, joinedAt: now, beatAt: now, expiresAt: now + leaseMs },
      ...{ dead: false, running: new Set(), claims: new Set(), claimsSettled: Number.NEGATIVE_INFINITY },
    })
  }
  for (const job of info.jobs) state.jobs.set(job.name, job)
  noteAlive(state, info, now)
  return { now }
}

export function beatInstance(state: MemoryState, request: BeatRequest): BeatResult {
  const now = state.clock.now()
  const instance = state.instances.get(request.instance)
  if (instance === undefined || instance.dead) {
    return { alive: false, lost: request.attempts.map(({ run }) => run), cancel: [], now }
  }
  instance.beatAt = now
  instance.expiresAt = now + request.leaseMs
  noteAlive(state, instance.info, now)
  const own = ownAttempts(state, instance, request)
  giveBackUnheard(state, instance, own, request.claimsSettled, now)
  handOn(state, now)
  return {
    alive: true,
    lost: request.attempts.filter(({ run }) => !own.has(run)).map(({ run }) => run),
    cancel: [...own.values()].filter(({ cancelRequested }) => cancelRequested).map(({ id }) => id),
    now,
  }
}

/** The listed attempts that still belong to the instance, by run. */
function ownAttempts(state: MemoryState, instance: InstanceRecord, { attempts }: BeatRequest): Map<string, RunRecord> {
  const own = new Map<string, RunRecord>()
  for (const { run: id, token } of attempts) {
    const run = state.runs.get(id)
    if (run?.owner === instance && run.token === token) own.set(id, run)
  }
  return own
}

/** Makes runs ready again whose claim was answered but which the instance does not list: the reply was lost. */
function giveBackUnheard(
  state: MemoryState,
  instance: InstanceRecord,
  own: ReadonlyMap<string, RunRecord>,
  claimsSettled: number,
  now: number,
): void {
  instance.claimsSettled = Math.max(instance.claimsSettled, claimsSettled)
  for (const claim of instance.claims) if (claim <= claimsSettled) instance.claims.delete(claim)
  for (const run of [...instance.running]) {
    if (run.claim <= claimsSettled && !own.has(run.id)) takeOver(state, run, now, false)
  }
}

export function leaveInstance(state: MemoryState, id: string): void {
  const instance = state.instances.get(id)
  if (instance === undefined) return
  const now = state.clock.now()
  for (const run of [...instance.running]) takeOver(state, run, now, false)
  state.instances.delete(id)
  handOn(state, now)
}

export function listInstances(state: MemoryState): Instance[] {
  return [...state.instances.values()]
    .filter(({ dead }) => !dead)
    .map(({ info, joinedAt, beatAt, expiresAt }) => ({ ...info, joinedAt, beatAt, expiresAt }))
}

export function listJobs(state: MemoryState): JobInfo[] {
  return [...state.jobs.values()]
}

export function listDeclared(state: MemoryState, app: string): DeclaredSet[] {
  return [...(state.declared.get(app)?.values() ?? [])]
}

export function declareSet(
  state: MemoryState,
  app: string,
  set: Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>,
): void {
  const now = state.clock.now()
  const sets = state.declared.get(app) ?? new Map<string, DeclaredSet>()
  state.declared.set(app, sets)
  if (!sets.has(set.hash)) sets.set(set.hash, frozenCopy({ ...set, firstSeenAt: now, aliveAt: now }))
}

function noteAlive(state: MemoryState, { app, declarations }: InstanceInfo, now: number): void {
  if (app === undefined || declarations === undefined) return
  const sets = state.declared.get(app)
  const set = sets?.get(declarations)
  if (set !== undefined) sets?.set(declarations, Object.freeze({ ...set, aliveAt: now }))
}
