import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../testing/manual-clock.js'
import { type Change, changesIn, NOTIFY_EVERY_MS, Wakes } from './wakes.js'

/** Hints to other processes; the test decides when each arrives. */
function scene() {
  const clock = manualClock()
  const sent: { readonly changes: readonly Change[]; arrive(): void }[] = []
  const wakes = new Wakes(clock, (changes) => new Promise((resolve) => sent.push({ changes, arrive: resolve })))
  return { clock, wakes, sent, changes: () => sent.map(({ changes }) => changes) }
}

describe('hints to other processes', () => {
  it('are sent at once, then together with all changes of the next milliseconds', async () => {
    const { clock, wakes, sent, changes } = scene()
    wakes.announce(['runs'])
    sent[0]?.arrive()
    wakes.announce(['runs'])
    wakes.announce(['schedules'])
    expect(changes()).toEqual([['runs']])
    await clock.advance(NOTIFY_EVERY_MS)
    expect(changes()).toEqual([['runs'], ['runs', 'schedules']])
  })

  it('continue after a slow one, with all changes since', async () => {
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

  it('skip the pause when a lock was handed over, but not the answer of the one in flight', async () => {
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
