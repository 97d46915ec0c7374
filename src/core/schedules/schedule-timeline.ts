import { openTimeline, type ParsedTimeline, type Timeline } from '../../time/timeline.js'

/** The fields of a schedule that determine its ticks. */
export interface TimelineFields {
  readonly timeline: ParsedTimeline
  /** The instant from which intervals are counted. */
  readonly anchor: number
  /** The first and the last instant that may be a tick. */
  readonly startsAt?: number
  readonly endsAt?: number
}

export function scheduleTimeline({ timeline, anchor, startsAt, endsAt }: TimelineFields): Timeline {
  return cutTimeline(timeline, anchor, startsAt, endsAt)
}

export function cutTimeline(timeline: ParsedTimeline, anchor: number, startsAt?: number, endsAt?: number): Timeline {
  const whole = openTimeline(timeline, anchor)
  if (startsAt === undefined && endsAt === undefined) return whole
  return new BoundedTimeline(whole, startsAt ?? Number.NEGATIVE_INFINITY, endsAt ?? Number.POSITIVE_INFINITY)
}

class BoundedTimeline implements Timeline {
  readonly #whole: Timeline
  readonly #first: number
  readonly #last: number

  constructor(whole: Timeline, first: number, last: number) {
    this.#whole = whole
    this.#first = first
    this.#last = last
  }

  get kind(): Timeline['kind'] {
    return this.#whole.kind
  }

  next(after: number): number | undefined {
    const tick = this.#whole.next(this.#from(after))
    return tick !== undefined && tick <= this.#last ? tick : undefined
  }

  previous(before: number): number | undefined {
    const tick = this.#whole.previous(Math.min(before, this.#last + 1))
    return tick !== undefined && tick >= this.#first ? tick : undefined
  }

  between(from: number, to: number, limit: number): number[] {
    return this.#whole.between(this.#from(from), Math.min(to, this.#last), limit)
  }

  count(from: number, to: number): number {
    return this.#whole.count(this.#from(from), Math.min(to, this.#last))
  }

  describe(): string {
    return this.#whole.describe()
  }

  #from(after: number): number {
    return Math.max(after, this.#first - 1)
  }
}
