import { Cron } from 'croner'
import { expect, test } from 'vitest'
import { type Library, TICKS } from './compare.js'
import { runCases } from './run-cases.js'
import { plan, TIMEOUT_MS } from './size.js'

const croner: Library = {
  name: 'croner',
  dialect: 'croner',
  ticks: ({ text }, { zone }, after) =>
    new Cron(text, { timezone: zone }).nextRuns(TICKS, new Date(after)).map((date) => date.getTime()),
  // croner matches "29 to 31 February", turns it into 1 to 3 March, and continues after it: see docs/time.md.
  isKnownDefect: (wall) => new Date(wall).getUTCMonth() === 2 && new Date(wall).getUTCDate() <= 3,
  reachMs: 0,
  getsLostInRepeats: false,
}

const cases = plan(200_000, 1_000_000)

test(`${cases.expressions * TICKS} ticks equal those of croner, and follow the rules near clock changes`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const outcome = await runCases(croner, cases)
  console.log('croner', JSON.stringify(outcome))
  expect(outcome.equal).toBeGreaterThan(cases.expressions * TICKS * 0.85)
  expect(outcome.proven).toBeGreaterThan(cases.expressions)
  expect(outcome.explained).toBeLessThan(cases.expressions / 500)
})
