import type { MemoryState } from '../schema/state.js'

export function freeze(state: MemoryState, note: string | undefined): void {
  state.frozen ??= Object.freeze({ at: state.now, ...(note === undefined ? {} : { note }) })
}

export function thaw(state: MemoryState): void {
  state.frozen = undefined
  state.wakes.add('runs')
}
