import type { MemoryState } from '../schema/state.js'

export function isAvailable(state: MemoryState, key: string, limit: number): boolean {
  return (state.names.get(key)?.engaged.size ?? 0) < limit
}
