import { describe, expect, it } from 'vitest'
import { BROKEN } from './broken-stores.js'
import { report } from './report.js'
import { simulate } from './simulate.js'

/** Enough seeds to detect every fault. */
const SEEDS = 25

describe('the simulation', () => {
  it.each(BROKEN)('detects that a store %s', { timeout: 120_000 }, async (_, violated, breaks) => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const { violations, chronicle } = await simulate(seed, breaks)
      const telling = violations.filter(({ invariant }) => invariant === violated)
      if (telling.length === 0) continue
      expect(report(seed, { violations: telling, chronicle })).toContain(`SEED=${seed}`)
      return
    }
    expect.fail(`${SEEDS} seeds, and never was "${violated}" violated`)
  })

  it('is reproducible', { timeout: 120_000 }, async () => {
    const [one, other] = [await simulate(7), await simulate(7)]
    expect(one.chronicle.entries()).toEqual(other.chronicle.entries())
  })
})
