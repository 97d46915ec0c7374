import { describe, expect, it } from 'vitest'
import { BROKEN } from './broken-stores.js'
import { report } from './report.js'
import { simulate } from './simulate.js'

/** So many seeds are enough to find each of them. */
const SEEDS = 40

describe('the simulation', () => {
  for (const [name, breaks] of Object.entries(BROKEN)) {
    it(`finds out that a store ${name}`, { timeout: 120_000 }, async () => {
      const found = await firstViolation(breaks)
      expect(found).toContain('SEED=')
      if (process.env.VERBOSE !== undefined) console.log(`${name}: ${found?.split('\n', 2).join(' ').slice(0, 300)}`)
    })
  }

  it('happens the same way each time', async () => {
    const [one, other] = [await simulate(7), await simulate(7)]
    expect(one.chronicle.entries()).toEqual(other.chronicle.entries())
  })
})

async function firstViolation(breaks: (typeof BROKEN)[string]): Promise<string | undefined> {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const simulation = await simulate(seed, breaks)
    if (simulation.violations.length > 0) return report(seed, simulation)
  }
  return undefined
}
