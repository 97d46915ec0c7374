import type { Target } from '../../core/run.js'
import { targetName } from '../../core/stored-text.js'
import { NOWHERE } from './heap.js'
import type { RunRecord } from './run-record.js'
import type { Dedupe, MemoryState } from './state.js'

/** The entry because of which another run with this dedupe key is refused. */
export function dedupeOf(state: MemoryState, target: Target, dedupe: string, now: number): Dedupe | undefined {
  const entry = state.dedupes.get(dedupeId(target, dedupe))
  return entry !== undefined && entry.until > now ? entry : undefined
}

/** Reserves the dedupe key while the run is unfinished. */
export function openDedupe(state: MemoryState, run: RunRecord): void {
  if (run.dedupe === undefined) return
  const id = dedupeId(run.target, run.dedupe)
  dropDedupe(state, id)
  state.dedupes.set(id, { id, run: run.id, until: Number.POSITIVE_INFINITY, place: NOWHERE })
}

/** Keeps the dedupe key reserved for `keyFor` after the end, whether or not the run stays in the history. */
export function closeDedupe(state: MemoryState, run: RunRecord, now: number): void {
  if (run.dedupe === undefined) return
  const id = dedupeId(run.target, run.dedupe)
  const entry = state.dedupes.get(id)
  if (entry?.run !== run.id) return
  if (run.dedupeForMs <= 0) dropDedupe(state, id)
  else {
    entry.until = now + run.dedupeForMs
    state.tombstones.push(entry)
  }
}

export function dropDedupe(state: MemoryState, id: string): void {
  const entry = state.dedupes.get(id)
  if (entry === undefined) return
  if (entry.place !== NOWHERE) state.tombstones.remove(entry)
  state.dedupes.delete(id)
}

function dedupeId(target: Target, dedupe: string): string {
  return `${targetName(target)}\n${dedupe}`
}
