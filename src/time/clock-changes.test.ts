import { expect, it } from 'vitest'
import { clockChanges } from './clock-changes.js'
import { type DstRule, timeline } from './index.js'

function changes(cron: string, from: string, dst?: DstRule) {
  const spec = { cron, timezone: 'Europe/Berlin', ...(dst === undefined ? {} : { dst }) }
  const after = Date.parse(from) - 1
  return clockChanges(spec, after, timeline(spec).between(after, Infinity, 4)).map(
    ({ kind, local, at }) => `${kind} ${iso(local)} at ${iso(at)}Z`,
  )
}

const iso = (instant: number) => new Date(instant).toISOString().slice(5, 16)
const MARCH = '2026-03-28T00:00:00Z'
const OCTOBER = '2026-10-24T00:00:00Z'

it.each([
  ['30 2 * * *', MARCH, undefined, ['moved 03-29T02:30 at 03-29T01:00Z']],
  ['30 2 * * *', MARCH, { gap: 'skip' }, ['dropped 03-29T02:30 at 03-29T01:00Z']],
  ['30 2 * * *', OCTOBER, undefined, ['first 10-25T02:30 at 10-25T00:30Z']],
  [
    '30 2 * * *',
    OCTOBER,
    { repeat: 'both' },
    ['first 10-25T02:30 at 10-25T00:30Z', 'second 10-25T02:30 at 10-25T01:30Z'],
  ],
  ['30 9 * * *', MARCH, undefined, []],
  ['*/15 * * * *', '2026-03-29T00:30:00Z', undefined, []],
] as const)('%s after %s under %o: %j', (cron, from, dst, expected) => {
  expect(changes(cron, from, dst)).toEqual(expected)
})
