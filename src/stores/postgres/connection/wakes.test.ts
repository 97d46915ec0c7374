import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../testing/manual-clock.js'
import { NOTIFY_EVERY_MS, WAKE_GRANTED, WAKE_RUNS, WAKE_SCHEDULES, Wakes } from './wakes.js'

/** Hints to other processes, each of which arrives when the test says so. */
function scene() {
  const clock = manualClock()
  const sent: { readonly bits: number; arrive(): void }[] = []
  const wakes = new Wakes(clock, (bits) => new Promise((resolve) => sent.push({ bits, arrive: resolve })))
  return { clock, wakes, sent, bits: () => sent.map(({ bits }) => bits) }
}

describe('hints to other processes', () => {
  it('go out at once, then together with all that came within a few milliseconds', async () => {
    const { clock, wakes, sent, bits } = scene()
    wakes.announce(WAKE_RUNS)
    sent[0]?.arrive()
    wakes.announce(WAKE_RUNS)
    wakes.announce(WAKE_SCHEDULES)
    expect(bits()).toEqual([WAKE_RUNS])
    await clock.advance(NOTIFY_EVERY_MS)
    expect(bits()).toEqual([WAKE_RUNS, WAKE_RUNS | WAKE_SCHEDULES])
  })

  it('go on after one that took long, with all that came meanwhile', async () => {
    const { clock, wakes, sent, bits } = scene()
    wakes.announce(WAKE_RUNS)
    await clock.advance(NOTIFY_EVERY_MS * 3)
    wakes.announce(WAKE_SCHEDULES)
    expect(bits()).toEqual([WAKE_RUNS])
    sent[0]?.arrive()
    await clock.advance(0)
    expect(bits()).toEqual([WAKE_RUNS, WAKE_SCHEDULES])
    await clock.advance(NOTIFY_EVERY_MS * 3)
    sent[1]?.arrive()
    await clock.advance(0)
    for (let at = 2; at < 5; at += 1) {
      wakes.announce(WAKE_RUNS)
      expect(sent).toHaveLength(at + 1)
      sent[at]?.arrive()
      await clock.advance(NOTIFY_EVERY_MS * 3)
    }
  })

  it('do not rest when a lock was handed on, but come one after the other', async () => {
    const { clock, wakes, sent, bits } = scene()
    wakes.announce(WAKE_RUNS)
    wakes.announce(WAKE_GRANTED)
    expect(bits()).toEqual([WAKE_RUNS])
    sent[0]?.arrive()
    await clock.advance(0)
    expect(bits()).toEqual([WAKE_RUNS, WAKE_GRANTED])
  })
})
