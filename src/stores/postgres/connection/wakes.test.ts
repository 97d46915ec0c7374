import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../testing/manual-clock.js'
import { type Change, changesIn, NOTIFY_EVERY_MS, Wakes } from './wakes.js'

/** Hints to other processes, each of which arrives when the test says so. */
function scene() {
  const clock = manualClock()
  const sent: { readonly changes: readonly Change[]; arrive(): void }[] = []
  const wakes = new Wakes(clock, (changes) => new Promise((resolve) => sent.push({ changes, arrive: resolve })))
  return { clock, wakes, sent, changes: () => sent.map(({ changes }) => changes) }
}

describe('hints to other processes', () => {
  it('go out at once, then together with all that came within a few milliseconds', async () => {
    const { clock, wakes, sent, changes } = scene()
    wakes.announce(['runs'])
    sent[0]?.arrive()
    wakes.announce(['runs'])
    wakes.announce(['schedules'])
    expect(changes()).toEqual([['runs']])
    await clock.advance(NOTIFY_EVERY_MS)
    expect(changes()).toEqual([['runs'], ['runs', 'schedules']])
  })

  it('go on after one that took long, with all that came meanwhile', async () => {
    const { clock, wakes, sent, changes } = scene()
    wakes.announce(['runs'])
    await clock.advance(NOTIFY_EVERY_MS * 3)
    wakes.announce(['schedules'])
    expect(changes()).toEqual([['runs']])
    sent[0]?.arrive()
    await clock.advance(0)
    expect(changes()).toEqual([['runs'], ['schedules']])
    await clock.advance(NOTIFY_EVERY_MS * 3)
    sent[1]?.arrive()
    await clock.advance(0)
    for (let at = 2; at < 5; at += 1) {
      wakes.announce(['runs'])
      expect(sent).toHaveLength(at + 1)
      sent[at]?.arrive()
      await clock.advance(NOTIFY_EVERY_MS * 3)
    }
  })

  it('do not rest when a lock was handed on, but come one after the other', async () => {
    const { clock, wakes, sent, changes } = scene()
    wakes.announce(['runs'])
    wakes.announce(['granted'])
    expect(changes()).toEqual([['runs']])
    sent[0]?.arrive()
    await clock.advance(0)
    expect(changes()).toEqual([['runs'], ['granted']])
  })
})

it('changes are words of an array of the database', () => {
  expect(changesIn('{leases,runs,unknown,runs}')).toEqual(['runs', 'leases'])
  expect(changesIn('{}')).toEqual([])
})
