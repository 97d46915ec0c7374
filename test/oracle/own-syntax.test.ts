/** Compares syntax that only Belfry reads (`L-3`, wrapping ranges) with the brute-force oracle. */
import { expect, test } from 'vitest'
import { ticksInUtc } from './brute-force.js'
import { type Library, TICKS, type ZoneClock } from './compare.js'
import { runCases } from './run-cases.js'
import { plan, TIMEOUT_MS } from './size.js'

const DAY = 86_400_000
/** Lies after all compared ticks. A list that ends before it means that the expression has no more ticks. */
const UNTIL = Date.UTC(2065, 0, 1)

const bruteForce: Library = {
  name: 'brute force',
  dialect: 'belfry',
  ticks: (expression, at, after) => {
    // Twice as many times as needed, because a time in a gap may map to the same instant as another time.
    const walls = ticksInUtc(expression, at.clock(after), 2 * TICKS, UNTIL)
    return [...new Set(walls.map((wall) => instantOf(wall, at, after)))].sort((a, b) => a - b).slice(0, TICKS)
  },
  isKnownDefect: () => false,
  reachMs: 0,
  getsLostInRepeats: false,
}

/** The instant at which the wall clock shows a time; for a time in a gap, an instant near the change. */
function instantOf(wall: number, { clock }: ZoneClock, after: number): number {
  const [earlier, later] = [wall - DAY, wall + DAY].map((near) => wall - (clock(near) - near)) as [number, number]
  return [earlier, later].find((instant) => clock(instant) === wall && instant > after) ?? earlier
}

const cases = plan(15_000, 9_000_000)

test(`${cases.expressions * TICKS} ticks of Belfry's own syntax equal those of brute force`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const outcome = await runCases(bruteForce, cases)
  console.log('own syntax', JSON.stringify(outcome))
  expect(outcome.equal).toBeGreaterThan(cases.expressions * TICKS * 0.8)
  expect(outcome.proven).toBeGreaterThan(cases.expressions)
})
