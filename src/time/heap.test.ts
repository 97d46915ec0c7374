import { expect, test } from 'vitest'
import { collectGarbage } from '../../test/collect-garbage.js'
import { timeline } from './index.js'

const COUNT = 40_000

/** The heap in use after garbage collection. */
async function settledHeap(): Promise<number> {
  await collectGarbage()
  return process.memoryUsage().heapUsed
}

test('a parsed expression takes at most 1 kB of heap, including its cache entry', async () => {
  const spec = (number: number) => ({
    cron: `${number % 60} ${Math.floor(number / 60) % 24} ${1 + (Math.floor(number / 1_440) % 28)} * MON-FRI`,
    timezone: 'Europe/Berlin',
  })
  timeline(spec(0)).next(0)
  const before = await settledHeap()
  for (let number = 0; number < COUNT; number += 1) timeline(spec(number)).next(1.7e12)
  const each = ((await settledHeap()) - before) / COUNT
  // Both calls return the same object: timelines are cached, and the measured heap includes the cache entries.
  expect(timeline(spec(17))).toBe(timeline(spec(17)))
  expect(each).toBeLessThan(1_024)
  expect(each).toBeGreaterThan(100)
})
