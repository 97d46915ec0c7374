import { expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { BURST_MS, BurstPriority } from './burst-priority.js'

async function isOver(burst: BurstPriority): Promise<boolean> {
  let over = false
  void burst.over().then(() => {
    over = true
  })
  await Promise.resolve()
  await Promise.resolve()
  return over
}

it('the settler and the ticker do not wait when there is no burst', async () => {
  expect(await isOver(new BurstPriority(manualClock()))).toBe(true)
})

it('a burst ends when all due runs have been started', async () => {
  const burst = new BurstPriority(manualClock())
  burst.begin()
  expect(await isOver(burst)).toBe(false)
  const over = burst.over()
  burst.end()
  await over
  expect(await isOver(burst)).toBe(true)
})

it('a burst that takes too long no longer delays the others, until it has ended and another begins', async () => {
  const clock = manualClock()
  const burst = new BurstPriority(clock)
  burst.begin()
  const over = burst.over()
  await clock.advance(BURST_MS)
  await over
  burst.begin()
  expect(await isOver(burst)).toBe(true)
  burst.end()
  burst.begin()
  expect(await isOver(burst)).toBe(false)
  burst.end()
})

it('a burst without free slots delays nothing, and does not begin again before it has ended', async () => {
  const burst = new BurstPriority(manualClock())
  burst.begin()
  const over = burst.over()
  burst.giveWay()
  await over
  burst.begin()
  expect(await isOver(burst)).toBe(true)
  burst.end()
  burst.begin()
  expect(await isOver(burst)).toBe(false)
  burst.end()
})
