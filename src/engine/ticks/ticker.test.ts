import { expect, it } from 'vitest'
import { silentLogger } from '../../core/logger.js'
import type { AdvanceResult } from '../../core/store.js'
import { memory } from '../../stores/memory/index.js'
import { manualClock } from '../../testing/manual-clock.js'
import { Events } from '../events.js'
import { BurstPriority } from '../runs/burst-priority.js'
import { ticker } from './ticker.js'

/** How long a ticker sleeps after this answer of the store, at the instant 10,000. */
function sleepAfter(answer: Partial<AdvanceResult>, lookaheadMs = 1_000, pollMs = 1_000): Promise<number> {
  const clock = manualClock()
  const whole = memory({ clock })
  const advance = async () => ({ now: 10_000, schedules: 0, recorded: 0, skipped: 0, ...answer })
  const store = { ...whole, schedules: { ...whole.schedules, advance } }
  const events = new Events(silentLogger)
  const options = { store, clock, events, log: silentLogger, burst: new BurstPriority(clock), onRecorded: () => {} }
  return ticker({ ...options, batch: 10, pollMs, lookaheadMs })()
}

it('a ticker wakes 0.7 of the look-ahead before the next tick', async () => {
  expect(await sleepAfter({ schedules: 1, nextDueAt: 11_300 })).toBe(600)
  expect(await sleepAfter({ nextDueAt: 11_300 })).toBe(600)
  expect(await sleepAfter({ nextDueAt: 10_001 }, 0)).toBe(1)
})

it('a ticker wakes at least twice a minute, because distant ticks send no hint', async () => {
  expect(await sleepAfter({}, 1_000, 86_400_000)).toBe(30_000)
  expect(await sleepAfter({ nextDueAt: 1_000_000 }, 1_000, 86_400_000)).toBe(30_000)
})

it('a ticker wakes earlier after it was late, and later again when fewer ticks are due', async () => {
  const clock = manualClock()
  const whole = memory({ clock })
  let [took, schedules] = [0, 0]
  const advance = async () => {
    await clock.advance(took)
    return { now: 10_000, schedules, recorded: schedules, skipped: 0, nextDueAt: 12_000 }
  }
  const store = { ...whole, schedules: { ...whole.schedules, advance } }
  const events = new Events(silentLogger)
  const options = { store, clock, events, log: silentLogger, burst: new BurstPriority(clock), onRecorded: () => {} }
  const step = ticker({ ...options, batch: 10, pollMs: 5_000, lookaheadMs: 1_000 })
  const sleepAfterStep = (ms: number, count: number) => {
    ;[took, schedules] = [ms, count]
    return step()
  }
  expect(await sleepAfterStep(400, 10)).toBe(0)
  expect(await sleepAfterStep(200, 5)).toBe(2_000 - 900)
  // A step that finds no schedule does not change the lead.
  expect(await sleepAfterStep(1, 0)).toBe(2_000 - 900)
  expect(await sleepAfterStep(700, 9)).toBe(2_000 - 1_000)
  expect(await sleepAfterStep(10, 9)).toBe(2_000 - 700)
})

it('a ticker does not busy-poll for ticks that others are recording', async () => {
  expect(await sleepAfter({ nextDueAt: 9_000 })).toBe(20)
  expect(await sleepAfter({ nextDueAt: 10_400 })).toBe(20)
  expect(await sleepAfter({ schedules: 1, nextDueAt: 9_000 })).toBe(1)
})
