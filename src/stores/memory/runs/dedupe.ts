import type { Target } from '../../../core/runs/run.js'
import { targetName } from '../../../core/runs/stored-text.js'
import type { Dedupe, MemoryState } from '../schema/state.js'
import type { RunRecord } from './run-codec.js'

/** The entry that holds this dedupe key, if there is one. */
export function dedupeOf(state: MemoryState, target: Target, dedupe: string): Dedupe | undefined {
  const entry = state.dedupes.get(dedupeId(target, dedupe))
  return entry !== undefined && entry.until > state.now ? entry : undefined
}

/** While the run is unfinished, its dedupe key refuses others. */
export function openDedupe(state: MemoryState, run: RunRecord): void {
  if (run.dedupe === undefined) return
  const id = dedupeId(run.target, run.dedupe)
  dropDedupe(state, id)
  state.dedupes.set(id, { id, run: run.id, until: Number.POSITIVE_INFINITY })
}

/** After the run's end the key refuses others for the time that was asked for, even if the history does not keep the run. */
export function closeDedupe(state: MemoryState, run: RunRecord): void {
  const { dedupe, dedupeForMs = 0 } = run
  if (dedupe === undefined) return
  const id = dedupeId(run.target, dedupe)
  const entry = state.dedupes.get(id)
  if (entry?.run !== run.id) return
  if (dedupeForMs <= 0) dropDedupe(state, id)
  else {
    entry.until = state.now + dedupeForMs
    state.tombstones.push(entry)
  }
}

export function dropDedupe(state: MemoryState, id: string): void {
  const entry = state.dedupes.get(id)
  if (entry === undefined) return
  state.tombstones.remove(entry)
  state.dedupes.delete(id)
}

function dedupeId(target: Target, dedupe: string): string {
  return `${targetName(target)}\n${dedupe}`
}
