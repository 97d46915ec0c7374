/**
 * Intended differences from croner 11 and cron-parser 5. docs/time.md lists each by name. Each is tested on both sides,
 * so that a new library version that removes one fails here.
 */
import { readFileSync } from 'node:fs'
import { CronExpressionParser } from 'cron-parser'
import { Cron } from 'croner'
import { describe, expect, test } from 'vitest'
import { BelfryError, timeline } from '../../src/time/index.js'

interface Difference {
  readonly name: string
  readonly cron: string
  readonly zone?: string
  readonly after?: string
  /** Ticks in UTC to the minute, or the code of a refusal. */
  readonly belfry: readonly string[] | string
  /** Ticks, or `refused`; absent where the library agrees or does not support the syntax. */
  readonly croner?: readonly string[] | 'refused'
  readonly parser?: readonly string[] | 'refused'
}

const spring = { zone: 'Europe/Berlin', after: '2026-03-28T23:00:00Z' }
const autumn = { zone: 'Europe/Berlin', after: '2026-10-24T23:00:00Z' }

const DIFFERENCES: readonly Difference[] = [
  // Clock changes.
  {
    name: 'gap-shift-one',
    cron: '30 2 * * *',
    ...spring,
    belfry: ['2026-03-29T01:00', '2026-03-30T00:30'],
    parser: ['2026-03-29T01:30', '2026-03-30T00:30'],
  },
  {
    name: 'gap-shift-many',
    cron: '0,30 2 * * *',
    ...spring,
    belfry: ['2026-03-29T01:00', '2026-03-30T00:00'],
    croner: ['2026-03-30T00:00', '2026-03-30T00:30'],
    parser: ['2026-03-29T01:00', '2026-03-29T01:30'],
  },
  {
    name: 'gap-wildcard',
    cron: '*/15 2 * * *',
    ...spring,
    belfry: ['2026-03-30T00:00', '2026-03-30T00:15'],
    parser: ['2026-03-29T01:00', '2026-03-29T01:15'],
  },
  {
    name: 'repeat-first',
    cron: '0,30 2 * * *',
    ...autumn,
    belfry: ['2026-10-25T00:00', '2026-10-25T00:30', '2026-10-26T01:00'],
    croner: ['2026-10-25T00:00', '2026-10-25T00:30', '2026-10-25T01:00'],
  },
  {
    name: 'repeat-wildcard',
    cron: '*/30 2 * * *',
    ...autumn,
    belfry: ['2026-10-25T00:00', '2026-10-25T00:30', '2026-10-25T01:00'],
    parser: ['2026-10-25T00:00', '2026-10-25T00:30', '2026-10-26T01:00'],
  },
  // Syntax that only Belfry reads.
  { name: 'range-wraps', cron: '0 22-2 * * *', belfry: ['1970-01-01T01:00'], croner: 'refused', parser: 'refused' },
  { name: 'before-last-day', cron: '0 0 L-3 * *', belfry: ['1970-01-28T00:00'], croner: 'refused', parser: 'refused' },
  { name: 'last-weekday-in-list', cron: '0 0 1,LW * *', belfry: ['1970-01-30T00:00'], croner: 'refused' },
  { name: 'value-twice', cron: '5,5 * * * *', belfry: ['1970-01-01T00:05'], parser: 'refused' },
  { name: 'modifiers', cron: '0 0 15W * *', belfry: ['1970-01-15T00:00'], parser: 'refused' },
  { name: 'modifiers', cron: '0 0 1 * +MON', belfry: ['1970-06-01T00:00'], parser: 'refused' },
  { name: 'modifiers', cron: '0 0 * * FRI#L', belfry: ['1970-01-30T00:00'], parser: 'refused' },
  { name: 'modifiers', cron: '0 0 * * 5l', belfry: ['1970-01-30T00:00'], parser: 'refused' },
  { name: 'year-field', cron: '0 0 0 1 1 * 2030', belfry: ['2030-01-01T00:00'], parser: 'refused' },
  {
    name: 'far-years',
    cron: '0 0 1 1 *',
    after: '3000-06-01T00:00:00Z',
    belfry: ['3001-01-01T00:00'],
    croner: [],
  },
  // Syntax that Belfry refuses or reads differently.
  { name: 'nickname-case', cron: '@Daily', belfry: 'EXPRESSION_SYNTAX', croner: ['1970-01-02T00:00'] },
  { name: 'nicknames-known', cron: '@weekdays', belfry: 'EXPRESSION_SYNTAX', parser: ['1970-01-02T00:00'] },
  { name: 'nicknames-known', cron: '@midnight', belfry: ['1970-01-02T00:00'], parser: 'refused' },
  { name: 'step-needs-range', cron: '0/15 * * * *', belfry: 'EXPRESSION_SYNTAX', parser: ['1970-01-01T00:15'] },
  { name: 'missing-fields', cron: '* *', belfry: 'EXPRESSION_SYNTAX', parser: ['1970-01-01T00:01'] },
  { name: 'missing-fields', cron: '', belfry: 'EXPRESSION_SYNTAX', parser: ['1970-01-01T00:01'] },
  { name: 'hashed-values', cron: 'H(9-9) * * * *', belfry: 'EXPRESSION_SYNTAX', parser: ['1970-01-01T00:09'] },
  {
    name: 'question-mark',
    cron: '? 0 * * *',
    belfry: 'EXPRESSION_SYNTAX',
    croner: ['1970-01-01T00:01'],
    parser: ['1970-01-01T00:01'],
  },
  { name: 'modifier-on-range', cron: '0 0 * * 1-5#2', belfry: 'EXPRESSION_SYNTAX', croner: ['1970-01-08T00:00'] },
  {
    name: 'last-of-a-range',
    cron: '0 0 * * 1-5L',
    belfry: 'EXPRESSION_SYNTAX',
    croner: ['1970-01-26T00:00', '1970-01-27T00:00'],
    parser: ['1970-01-02T00:00', '1970-01-05T00:00'],
  },
  {
    name: 'nth-in-a-list',
    cron: '0 0 * * MON#1,FRI#2',
    belfry: ['1970-01-05T00:00', '1970-01-09T00:00', '1970-02-02T00:00'],
    parser: 'refused',
  },
  {
    name: 'step-beyond-field',
    cron: '*/90 * * * *',
    belfry: 'EXPRESSION_OUT_OF_RANGE',
    croner: 'refused',
    parser: ['1970-01-01T01:00', '1970-01-01T02:00'],
  },
  {
    name: 'last-of-a-number',
    cron: '0 0 15L * *',
    belfry: 'EXPRESSION_SYNTAX',
    croner: ['1970-01-15T00:00', '1970-01-31T00:00'],
    parser: ['1970-01-31T00:00', '1970-02-28T00:00'],
  },
  {
    name: 'star-in-list',
    cron: '0 0 *,1 * MON',
    belfry: ['1970-01-05T00:00', '1970-01-12T00:00'],
    croner: ['1970-01-02T00:00', '1970-01-03T00:00'],
    parser: 'refused',
  },
  {
    name: 'sunday-to-sunday',
    cron: '0 0 * * SUN-SUN',
    belfry: ['1970-01-04T00:00', '1970-01-11T00:00'],
    croner: ['1970-01-02T00:00', '1970-01-03T00:00'],
  },
  { name: 'never-fires', cron: '0 0 30 2 *', belfry: 'EXPRESSION_NEVER_FIRES', croner: [], parser: 'refused' },
  {
    name: 'line-breaks',
    cron: '\n0 0 * * *',
    belfry: 'EXPRESSION_SYNTAX',
    croner: ['1970-01-02T00:00'],
    parser: ['1970-01-02T00:00'],
  },
  // Defects of the libraries.
  {
    name: 'croner-loses-march',
    cron: '0 0 1,31 * *',
    after: '2035-02-15T00:00:00Z',
    belfry: ['2035-03-01T00:00', '2035-03-31T00:00'],
    croner: ['2035-03-31T00:00', '2035-04-01T00:00'],
  },
  {
    name: 'cron-parser-lost',
    cron: '23 * * * *',
    zone: 'Australia/Lord_Howe',
    after: '2027-04-03T13:17:35Z',
    belfry: ['2027-04-03T13:23', '2027-04-03T14:23', '2027-04-03T15:53'],
    parser: 'refused',
  },
  {
    name: 'cron-parser-lost',
    cron: '15,30,47 * * * *',
    zone: 'Pacific/Chatham',
    after: '2041-04-06T12:57:32Z',
    belfry: ['2041-04-06T13:02', '2041-04-06T13:30', '2041-04-06T13:45'],
    parser: ['2041-04-06T13:02', '2041-04-06T12:30', '2041-04-06T12:45'],
  },
  {
    name: 'cron-parser-gap-hours',
    cron: '*/16 0-1,3 * * *',
    zone: 'Pacific/Chatham',
    after: '2052-09-28T13:50:00Z',
    belfry: ['2052-09-28T14:03', '2052-09-29T10:15'],
    parser: ['2052-09-28T14:15', '2052-09-28T14:31'],
  },
]

describe.each(DIFFERENCES)('$name: $cron', ({ cron, zone = 'UTC', after = '1970-01-01T00:00:00Z', ...expected }) => {
  const start = Date.parse(after)
  const minutes = (ticks: readonly number[]) => ticks.map((tick) => new Date(tick).toISOString().slice(0, 16))
  const count = (ticks: readonly string[] | string | undefined) =>
    Array.isArray(ticks) ? Math.max(ticks.length, 1) : 5

  test('Belfry', () => {
    const ticks = () => minutes(timeline({ cron, timezone: zone }).between(start, 1e15, count(expected.belfry)))
    if (typeof expected.belfry === 'string') {
      expect(ticks).toThrowError(BelfryError)
      expect(ticks).toThrowError(expect.objectContaining({ code: expected.belfry }))
    } else {
      expect(ticks()).toEqual(expected.belfry)
    }
  })

  if (expected.croner !== undefined)
    test('croner', () => {
      const ticks = () =>
        minutes(
          new Cron(cron, { timezone: zone })
            .nextRuns(count(expected.croner), new Date(start))
            .map((date) => date.getTime()),
        )
      if (expected.croner === 'refused') expect(ticks).toThrowError()
      else expect(ticks()).toEqual(expected.croner)
    })

  if (expected.parser !== undefined)
    test('cron-parser', () => {
      const ticks = () => {
        const expression = CronExpressionParser.parse(cron, { tz: zone, currentDate: new Date(start) })
        return minutes(Array.from({ length: count(expected.parser) }, () => expression.next().getTime()))
      }
      if (expected.parser === 'refused') expect(ticks).toThrowError()
      else expect(ticks()).toEqual(expected.parser)
    })
})

test('docs/time.md lists exactly the tested differences', () => {
  const page = readFileSync(new URL('../../docs/time.md', import.meta.url), 'utf8')
  const listed = [...page.slice(page.indexOf('## Differences')).matchAll(/^\| `([a-z-]+)` *\|/gm)].map(
    (match) => match[1],
  )
  expect([...new Set(listed)].sort()).toEqual([...new Set(DIFFERENCES.map(({ name }) => name))].sort())
})
