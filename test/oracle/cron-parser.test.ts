import { CronExpressionParser } from 'cron-parser'
import { expect, test } from 'vitest'
import { type Library, TICKS } from './compare.js'
import { runCases } from './run-cases.js'
import { LONG, plan, TIMEOUT_MS } from './size.js'

const parser: Library = {
  name: 'cron-parser',
  dialect: 'cron-parser',
  ticks: ({ text }, { zone }, after) => {
    const expression = CronExpressionParser.parse(text, { tz: zone, currentDate: new Date(after) })
    return Array.from({ length: TICKS }, () => expression.next().getTime())
  },
  isKnownDefect: () => false,
  // cron-parser shifts whole hours: a gap from 02:45 to 03:45 affects its ticks from 02:00 to 04:59.
  reachMs: 3_600_000,
  getsLostInRepeats: true,
}

/** Zones that turned the clock back by half an hour. There cron-parser searches for about a second and gives up. */
const SLOW = ['America/Caracas', 'Asia/Pyongyang', 'Australia/Lord_Howe']

const all = plan(50_000, 5_000_000)
const cases = LONG ? all : { ...all, zones: all.zones.filter((zone) => !SLOW.includes(zone)) }

test(`${cases.expressions * TICKS} ticks equal those of cron-parser, and follow the rules near clock changes`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const outcome = await runCases(parser, cases)
  console.log('cron-parser', JSON.stringify(outcome))
  expect(outcome.equal).toBeGreaterThan(cases.expressions * TICKS * 0.85)
  expect(outcome.proven).toBeGreaterThan(cases.expressions)
  expect(outcome.lost).toBeLessThan(cases.expressions / 50)
})
