/**
 * Reads the wall clock from Intl minute by minute. It is deliberately slow and simple, and shares no code with the
 * offset search under test.
 */
const MINUTE = 60_000
const HOUR = 3_600_000

/** Converts an instant to a zone's local time, written as if it were UTC. */
export type WallClock = (instant: number) => number

export function wallClock(zone: string): WallClock {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  })
  return (instant) => {
    // 03/29/2026, 02:30:00
    const text = format.format(instant)
    const part = (from: number, to: number) => Number(text.slice(from, to))
    const year = text.indexOf(',')
    const time = year + 2
    return Date.UTC(
      part(6, year),
      part(0, 2) - 1,
      part(3, 5),
      part(time, time + 2),
      part(time + 3, time + 5),
      part(time + 6, time + 8),
    )
  }
}

/** A change of a zone's offset; `at` is the first instant of the new one. */
export interface Change {
  readonly at: number
  /** How far the clock jumps: positive for a gap, negative for a repeat. */
  readonly jump: number
}

/** All changes between two instants, found by reading the clock every `step`. */
export function changes(clock: WallClock, from: number, to: number, step: number): Change[] {
  const found: Change[] = []
  let before = clock(from) - from
  for (let at = from; at < to; at += step) {
    const offset = clock(at + step) - (at + step)
    if (offset === before) continue
    let same = at
    let other = at + step
    while (other - same > 1_000) {
      const middle = same + Math.floor((other - same) / 2_000) * 1_000
      if (clock(middle) - middle === before) same = middle
      else other = middle
    }
    found.push({ at: other, jump: offset - before })
    before = offset
  }
  return found
}

/** The minutes around a change and the wall clock at each. */
export interface Window {
  readonly from: number
  /** The last instant of the window. */
  readonly to: number
  /** The wall clock at `from + index` minutes. */
  readonly walls: Float64Array
  /** 1 where an earlier minute of the window had the same wall clock. */
  readonly repeated: Uint8Array
}

/** The range in which a change can matter, with an hour on both sides. */
export function windowAround(clock: WallClock, { at, jump }: Change): Window {
  const reach = Math.abs(jump) + HOUR
  const from = Math.floor((at - reach) / MINUTE) * MINUTE
  const count = Math.ceil((at + reach - from) / MINUTE)
  const walls = new Float64Array(count)
  const repeated = new Uint8Array(count)
  const seen = new Set<number>()
  for (let index = 0; index < count; index += 1) {
    const wall = clock(from + index * MINUTE)
    if (wall % MINUTE !== 0) throw new Error(`the clock is not on the minute at ${new Date(from + index * MINUTE)}`)
    walls[index] = wall
    repeated[index] = seen.has(wall) ? 1 : 0
    seen.add(wall)
  }
  return { from, to: from + count * MINUTE - 1, walls, repeated }
}
