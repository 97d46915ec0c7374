import type { InstanceInfo } from '../../../core/instances/instance.js'
import type { DeclaredSet } from '../../../core/store.js'
import { frozenCopy } from '../runs/run-codec.js'
import type { MemoryState } from '../schema/state.js'

export function listDeclared(state: MemoryState, app: string): DeclaredSet[] {
  return [...(state.declared.get(app)?.values() ?? [])]
}

export function declareSet(
  state: MemoryState,
  app: string,
  set: Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>,
): void {
  const sets = state.declared.get(app) ?? new Map<string, DeclaredSet>()
  state.declared.set(app, sets)
  if (!sets.has(set.hash)) sets.set(set.hash, frozenCopy({ ...set, firstSeenAt: state.now, aliveAt: state.now }))
}

/** Notes that a live instance declares this set. */
export function noteAlive(state: MemoryState, { app, declarations }: InstanceInfo): void {
  if (app === undefined || declarations === undefined) return
  const sets = state.declared.get(app)
  const set = sets?.get(declarations)
  if (set !== undefined) sets?.set(declarations, Object.freeze({ ...set, aliveAt: state.now }))
}
