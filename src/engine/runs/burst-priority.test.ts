import { expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { RUSH_MS, Rush } from './burst-priority.js'

async function isOver(rush: Rush): Promise<boolean> {
  let over = false
  void rush.over().then(() => {
    over = true
  })
  await Promise.resolve()
  await Promise.resolve()
  return over
}

it('nobody waits when there is no rush', async () => {
  expect(await isOver(new Rush(manualClock()))).toBe(true)
})

it('a rush is over when all that is due has been started', async () => {
  const rush = new Rush(manualClock())
  rush.begin()
  expect(await isOver(rush)).toBe(false)
  const over = rush.over()
  rush.end()
  await over
  expect(await isOver(rush)).toBe(true)
})

it('a rush that takes too long holds nobody up any more, until it has ended and another begins', async () => {
  const clock = manualClock()
  const rush = new Rush(clock)
  rush.begin()
  const over = rush.over()
  await clock.advance(RUSH_MS)
  await over
  rush.begin()
  expect(await isOver(rush)).toBe(true)
  rush.end()
  rush.begin()
  expect(await isOver(rush)).toBe(false)
  rush.end()
})

it('a rush for which there is no room gives way, and does not begin again before it has ended', async () => {
  const rush = new Rush(manualClock())
  rush.begin()
  const over = rush.over()
  rush.giveWay()
  await over
  rush.begin()
  expect(await isOver(rush)).toBe(true)
  rush.end()
  rush.begin()
  expect(await isOver(rush)).toBe(false)
  rush.end()
})
