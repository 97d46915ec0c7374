import { SECOND_MS } from './calendar.js'
import { timeError } from './error.js'
import { isoText } from './instant.js'
import type { Timeline } from './timeline.js'

export const MAX_INSTANTS = 10_000

/** Sorts and checks a list of instants: not empty, at most `MAX_INSTANTS`, and no two in the same second. */
export function instantList(instants: readonly number[]): number[] {
  if (instants.length === 0) throw timeError('INSTANTS_INVALID', 'the list of instants is empty: name at least one')
  if (instants.length > MAX_INSTANTS) {
    throw timeError('INSTANTS_INVALID', `the list has ${instants.length} instants: at most ${MAX_INSTANTS} are allowed`)
  }
  const sorted = [...new Set(instants)].sort((a, b) => a - b)
  for (let at = 1; at < sorted.length; at += 1) {
    const [earlier = 0, later = 0] = [sorted[at - 1], sorted[at]]
    if (Math.floor(earlier / SECOND_MS) !== Math.floor(later / SECOND_MS)) continue
    throw timeError(
      'INSTANTS_INVALID',
      `${isoText(earlier)} and ${isoText(later)} fall in the same second: their ticks would share an id`,
    )
  }
  return sorted
}

/** Ticks at given instants, sorted. */
export class InstantsTimeline implements Timeline {
  readonly kind = 'at'
  readonly #instants: readonly number[]

  constructor(instants: readonly number[]) {
    this.#instants = instants
  }

  next(after: number): number | undefined {
    return this.#instants[this.#upTo(after)]
  }

  previous(before: number): number | undefined {
    return this.#instants[this.#upTo(Math.ceil(before) - 1) - 1]
  }

  between(from: number, to: number, limit: number): number[] {
    const start = this.#upTo(from)
    return this.#instants.slice(start, Math.min(Math.max(this.#upTo(to), start), start + limit))
  }

  count(from: number, to: number): number {
    return Math.max(this.#upTo(to) - this.#upTo(from), 0)
  }

  describe(): string {
    const [first = 0] = this.#instants
    const more = this.#instants.length - 1
    return `Once at ${isoText(first)}${more === 0 ? '' : `, and at ${more} more instant${more === 1 ? '' : 's'}`}`
  }

  /** How many instants of the list are at or before the given one, by bisection. */
  #upTo(instant: number): number {
    let low = 0
    let high = this.#instants.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#instants[middle] as number) <= instant) low = middle + 1
      else high = middle
    }
    return low
  }
}
