/**
 * The rules for clock changes, applied literally, minute by minute:
 *
 * - A minute fires when the wall clock shows it and the expression matches.
 * - When the clock jumps over a matching minute, the first instant after the jump fires (`gap: 'shift'`). A jump over a
 *   whole day fires nothing.
 * - A minute that the clock shows for the second time does not fire again (`repeat: 'first'`).
 * - The last two rules do not apply to an expression that follows real time.
 */
import type { DstRule } from '../../src/time/index.js'
import type { Expression } from './expression.js'
import type { Window } from './wall-clock.js'

const SECOND = 1_000
const MINUTE = 60_000
const DAY = 86_400_000

export function ticksInWindow(expression: Expression, window: Window, dst: DstRule | undefined): number[] {
  const followsRealTime = expression.wildcard && dst === undefined
  const shifts = !followsRealTime && dst?.gap !== 'skip'
  const onlyFirst = !followsRealTime && dst?.repeat !== 'both'
  const seconds = [...expression.seconds].sort((a, b) => a - b)
  const ticks = new Set<number>()
  for (let index = 0; index < window.walls.length; index += 1) {
    const instant = window.from + index * MINUTE
    const wall = window.walls[index] ?? 0
    const expected = index === 0 ? wall : (window.walls[index - 1] ?? 0) + MINUTE
    if (shifts && wall - expected < DAY) {
      for (let skipped = expected; skipped < wall; skipped += MINUTE) {
        if (matchesMinute(expression, skipped)) ticks.add(instant)
      }
    }
    if (onlyFirst && window.repeated[index] === 1) continue
    if (matchesMinute(expression, wall)) for (const second of seconds) ticks.add(instant + second * SECOND)
  }
  return [...ticks].sort((a, b) => a - b)
}

/** Whether an expression matches a minute of the wall clock, ignoring seconds. */
export function matchesMinute(expression: Expression, wall: number): boolean {
  const minutes = Math.floor(wall / MINUTE)
  if (!expression.minutes.has(modulo(minutes, 60))) return false
  if (!expression.hours.has(modulo(Math.floor(minutes / 60), 24))) return false
  const date = new Date(wall)
  return expression.matchesDay(date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate())
}

/** The first ticks after an instant in UTC, found by trying every day and every matching time of it. */
export function ticksInUtc(expression: Expression, after: number, count: number, until: number): number[] {
  const ticks: number[] = []
  const sorted = (values: ReadonlySet<number>) => [...values].sort((a, b) => a - b)
  const [hours, minutes, seconds] = [expression.hours, expression.minutes, expression.seconds].map(sorted)
  for (let day = Math.floor(after / DAY) * DAY; day <= until; day += DAY) {
    const date = new Date(day)
    if (!expression.matchesDay(date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate())) continue
    for (const hour of hours ?? []) {
      for (const minute of minutes ?? []) {
        for (const second of seconds ?? []) {
          const tick = day + ((hour * 60 + minute) * 60 + second) * SECOND
          if (tick > after && tick <= until) ticks.push(tick)
          if (ticks.length === count) return ticks
        }
      }
    }
  }
  return ticks
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by
}
