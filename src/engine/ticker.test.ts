import { expect, it } from 'vitest'
import { silentLogger } from '../core/logger.js'
import type { AdvanceResult } from '../core/store.js'
import { memory } from '../stores/memory/index.js'
import { manualClock } from '../testing/manual-clock.js'
import { Events } from './events.js'
import { Rush } from './rush.js'
import { ticker } from './ticker.js'

/** How long a ticker sleeps after a store's answer, at the instant 10,000. */
function sleepAfter(answer: Partial<AdvanceResult>, lookaheadMs = 1_000): Promise<number> {
  const clock = manualClock()
  const whole = memory({ clock })
  const advance = async () => ({ now: 10_000, schedules: 0, recorded: 0, skipped: 0, ...answer })
  const store = { ...whole, schedules: { ...whole.schedules, advance } }
  const events = new Events(silentLogger)
  const options = { store, events, log: silentLogger, rush: new Rush(clock), onRecorded: () => {} }
  return ticker({ ...options, batch: 10, pollMs: 1_000, lookaheadMs })()
}

it('a ticker looks again half of the look-ahead before the next tick', async () => {
  expect(await sleepAfter({ schedules: 1, nextDueAt: 11_300 })).toBe(800)
  expect(await sleepAfter({ nextDueAt: 11_300 })).toBe(800)
  expect(await sleepAfter({ nextDueAt: 10_001 }, 0)).toBe(1)
})

it('a ticker does not ask over and over for what others are recording', async () => {
  expect(await sleepAfter({ nextDueAt: 9_000 })).toBe(20)
  expect(await sleepAfter({ nextDueAt: 10_400 })).toBe(20)
  expect(await sleepAfter({ schedules: 1, nextDueAt: 9_000 })).toBe(1)
})
