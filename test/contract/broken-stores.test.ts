import { describe, expect, it } from 'vitest'
import { manualClock } from '../../src/testing/manual-clock.js'
import { contractCases, runCase } from '../../src/testing/store-contract.js'
import { type BrokenStore, openBroken } from './broken/broken-store.js'
import { brokenLeases } from './broken/leases.js'
import { brokenRuns } from './broken/runs.js'
import { brokenSchedules } from './broken/schedules.js'

/** The names of the contract tests that fail on a store. */
async function caughtBy(broken: BrokenStore): Promise<string[]> {
  const failed: string[] = []
  for (const test of contractCases) {
    const clock = manualClock()
    const opened = { store: openBroken(broken, clock), elapse: clock.advance }
    await runCase(test, async () => opened).catch(() => failed.push(test.name))
  }
  return failed
}

describe('the contract catches a store that', () => {
  for (const broken of [...brokenSchedules, ...brokenRuns, ...brokenLeases]) {
    it(`${broken.fault}: ${broken.caughtBy}`, async () => {
      expect(await caughtBy(broken)).toContain(broken.caughtBy)
    })
  }
})

it('finds nothing wrong with a correct store', async () => {
  expect(await caughtBy({ fault: 'is whole', caughtBy: '', breaks: () => ({}) })).toEqual([])
})
