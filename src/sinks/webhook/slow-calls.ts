/**
 * Calls to receivers that schedules name, once they are slow. A slow call takes no place among the sink's `concurrency`: the
 * engine goes on with the messages of other receivers, so receivers that accept and never answer cannot hold all calls.
 *
 *     begun ──100 ms without an answer──▶ slow ──answer or timeout──▶ ended
 *                                          └──too many are slow: the oldest of the origin with the most──▶ broken off
 *
 * Memory and sockets stay bounded, because only so many calls may be slow. Origins share these places: the one that has the
 * most gives up its oldest call, which counts as a timeout.
 */
import { type Clock, systemClock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'

export interface SlowCall {
  /** The receiver is known to be slow: do not wait any longer. */
  isSlow(): void
  end(): void
}

interface Place {
  readonly origin: string
  readonly since: number
  readonly breakOff: (why: Error) => void
}

/** A receiver that takes longer than this is slow. */
const SLOW_MS = 100

export class SlowCalls {
  readonly #most: number
  readonly #clock: Clock
  readonly #places = new Set<Place>()

  constructor(most: number, clock: Clock = systemClock) {
    this.#most = most
    this.#clock = clock
  }

  /** Calls `onSlow` once the call is slow, and `breakOff` if others need its place. */
  begin(origin: string, onSlow: () => void, breakOff: (why: Error) => void): SlowCall {
    const place: Place = { origin, since: this.#clock.monotonic(), breakOff }
    const isSlow = () => {
      cancel()
      if (this.#places.has(place)) return
      this.#places.add(place)
      onSlow()
      if (this.#places.size > this.#most) this.#makeRoom()
    }
    const cancel = this.#clock.after(SLOW_MS, isSlow)
    const end = () => {
      cancel()
      this.#places.delete(place)
    }
    return { isSlow, end }
  }

  #makeRoom(): void {
    const counts = new Map<string, number>()
    for (const { origin } of this.#places) counts.set(origin, (counts.get(origin) ?? 0) + 1)
    const most = Math.max(...counts.values())
    for (const place of this.#places) {
      const { origin, since, breakOff } = place
      if (counts.get(origin) !== most) continue
      this.#places.delete(place)
      const ms = Math.round(this.#clock.monotonic() - since)
      breakOff(failure('TIMEOUT', `${origin} has not answered within ${ms} ms, and other receivers need its place`))
      return
    }
  }
}
