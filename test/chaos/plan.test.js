// @ts-check
import { describe, expect, it } from 'vitest'
import { describeFault, planFaults } from './plan.js'

const options = { seconds: 60, processes: 8, leaseMs: 3_000 }
const kinds = /** @type {const} */ ([
  'kill',
  'stop',
  'term',
  'block',
  'cut',
  'lose',
  'sever',
  'delay',
  'mute',
  'deaf',
  'pause',
  'flush',
  'crash',
  'failover',
])

describe('the plan of faults', () => {
  it('is the same for the same seed, and different for another', () => {
    const plan = planFaults({ ...options, kinds, seed: 42 })
    expect(planFaults({ ...options, kinds, seed: 42 })).toEqual(plan)
    expect(planFaults({ ...options, kinds, seed: 43 })).not.toEqual(plan)
  })

  it('has every kind of fault that the store supports and no other, however short it is', () => {
    const planned = (/** @type {typeof kinds[number][]} */ ...some) =>
      new Set(planFaults({ ...options, seconds: 5, kinds: some, seed: 1 }).map(({ kind }) => kind))
    expect(planned('kill', 'stop')).toEqual(new Set(['kill', 'stop']))
    expect(planned(...kinds)).toEqual(new Set(kinds))
  })

  it('crashes the store at least once, however short it is, and stops processes for longer than their lease', () => {
    for (let seed = 1; seed <= 50; seed += 1) {
      const plan = planFaults({ ...options, seconds: 10, kinds, seed })
      for (const fate of ['crash', 'failover']) expect(plan.filter(({ kind }) => kind === fate)).toHaveLength(1)
      expect(plan.filter(({ kind, forMs }) => kind === 'stop' && forMs <= options.leaseMs)).toEqual([])
    }
  })

  it('can be printed', () => {
    expect(describeFault({ atMs: 2_345, kind: 'stop', process: 3, forMs: 4_000 })).toBe(
      '2.3 s: stop process 3 for 4000 ms',
    )
  })
})
