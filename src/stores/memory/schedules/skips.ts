import type { SkipRange } from '../../../core/schedules/plan.js'
import type { Lane, MemoryState } from '../schema/state.js'

export function addSkip(state: MemoryState, lane: Lane, range: SkipRange): void {
  const skip = { range: Object.freeze({ ...range }), lane, recordedAt: state.now }
  lane.skips.add(skip)
  state.skips.add(skip)
}

export function skippedRanges(state: MemoryState, id: string, from: number, to: number, limit: number): SkipRange[] {
  const ranges = [...(state.lanes.get(id)?.skips ?? [])].map(({ range }) => range)
  return ranges
    .filter((range) => range.from <= to && range.to >= from)
    .sort((one, other) => one.from - other.from)
    .slice(0, limit)
}
