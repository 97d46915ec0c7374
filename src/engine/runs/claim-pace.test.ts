import { describe, expect, it } from 'vitest'
import type { Clock } from '../../core/clock.js'
import type { ClaimedRun } from '../../core/store.js'
import { LearningPace } from './claim-pace.js'

/** An event loop whose turns the test controls. */
function setup() {
  let now = 0
  let turn = () => {}
  const freed: string[] = []
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    after: () => () => {},
    nextTurn(callback) {
      turn = callback
    },
  }
  const loop = { isBusy: false }
  const pace = new LearningPace({ clock, isLoopBusy: () => loop.isBusy, onFree: () => void freed.push('free') })
  const run = { target: { job: 'a' } } as ClaimedRun
  /** Claims as many runs as allowed. Their handlers together block the loop for `heldMs`. */
  function claim(heldMs: number, found = pace.most('a')): void {
    const jobs = [{ name: 'a', limit: pace.most('a') }]
    pace.asked(jobs)
    const startedAt = now
    pace.answered(
      jobs,
      Array.from({ length: Math.min(found, 1_000) }, () => run),
      startedAt,
    )
    now += heldMs
    endTurn()
  }
  function endTurn(): void {
    const callback = turn
    turn = () => {}
    callback()
  }
  return { pace, claim, freed, loop, run, endTurn }
}

describe('the pace of a job', () => {
  it('begins with one run, and grows while its handlers do not block the loop', () => {
    const { pace, claim } = setup()
    const most: number[] = []
    for (let at = 0; at < 6; at += 1) {
      most.push(pace.most('a'))
      claim(1)
    }
    expect(most).toEqual([1, 4, 16, 64, 256, Number.POSITIVE_INFINITY])
    expect(pace.isUnlimited('a')).toBe(true)
  })

  it('is one run at a time when each blocks the loop for long', () => {
    const { pace, claim } = setup()
    for (let at = 0; at < 4; at += 1) {
      claim(2_000)
      expect(pace.most('a')).toBe(1)
    }
  })

  it('drops when handlers begin to block the loop', () => {
    const { pace, claim } = setup()
    for (let at = 0; at < 5; at += 1) claim(0)
    claim(2_000, 100)
    expect(pace.most('a')).toBe(10)
  })

  it('allows no second claim before the first was measured, and signals when that is done', () => {
    const { pace, freed, run, endTurn } = setup()
    const jobs = [{ name: 'a', limit: 1 }]
    pace.asked(jobs)
    expect(pace.most('a')).toBe(0)
    expect(pace.most('another')).toBe(1)
    pace.answered(jobs, [run], 0)
    expect(pace.most('a')).toBe(0)
    endTurn()
    expect(pace.most('a')).toBe(4)
    expect(freed).toEqual(['free'])
  })

  it('is unchanged when a claim found nothing', () => {
    const { pace, claim, freed } = setup()
    claim(0, 0)
    expect(pace.most('a')).toBe(1)
    expect(freed).toEqual([])
  })

  it('is one run at a time while the loop is late', () => {
    const { pace, claim, loop } = setup()
    for (let at = 0; at < 5; at += 1) claim(0)
    loop.isBusy = true
    expect(pace.most('a')).toBe(1)
  })
})
