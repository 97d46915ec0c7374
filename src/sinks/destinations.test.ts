import { describe, expect, it } from 'vitest'
import { manualClock } from '../testing/manual-clock.js'
import { Destinations } from './destinations.js'

describe('a failure without a reason', () => {
  it('is blamed on the destination while others accept messages, and on the broker when none does', async () => {
    const clock = manualClock()
    const destinations = new Destinations(clock)
    expect(destinations.refused('full')).toBe(true)
    destinations.accepted('other')
    expect(destinations.refused('full')).toBe(false)
    expect(destinations.refused('other')).toBe(true)
    expect(destinations.refused('full')).toBe(true)
    destinations.accepted('other')
    await clock.advance(11_000)
    expect(destinations.refused('full')).toBe(true)
  })
})
