import { describe, expect, it } from 'vitest'
import { manualClock } from '../testing/manual-clock.js'
import { TimeGuess } from './time-guess.js'

describe('a guess at the store’s time', () => {
  it('is none before the store has said anything', () => {
    expect(new TimeGuess(manualClock()).now).toBeUndefined()
  })

  it('is what the store last said, and the time since then', async () => {
    const clock = manualClock()
    const guess = new TimeGuess(clock)
    guess.learn(1_000)
    await clock.advance(250)
    expect(guess.now).toBe(1_250)
    guess.learn(2_000)
    expect(guess.now).toBe(2_000)
  })

  it('goes by the answer that took the least time to come', async () => {
    const clock = manualClock()
    const guess = new TimeGuess(clock)
    guess.learn(1_000)
    await clock.advance(100)
    guess.learn(1_080)
    expect(guess.now).toBe(1_100)
  })

  it('is none for a while after one was of no use', async () => {
    const clock = manualClock()
    const guess = new TimeGuess(clock)
    guess.learn(1_000)
    guess.doubt()
    expect(guess.now).toBeUndefined()
    await clock.advance(10_000)
    expect(guess.now).toBe(11_000)
  })

  it('follows a clock that was set back', async () => {
    const clock = manualClock()
    const guess = new TimeGuess(clock)
    guess.learn(1_000_000)
    guess.learn(500_000)
    expect(guess.now).toBe(500_000)
  })
})
