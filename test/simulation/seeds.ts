import { expect, it } from 'vitest'
import { report } from './report.js'
import { simulate } from './simulate.js'

const SEEDS = Number(process.env.SEEDS ?? 300)
const SEED = process.env.SEED === undefined ? undefined : Number(process.env.SEED)
/** Seeds per test, so that a hang is noticed and progress is visible. */
const CHUNK = 25

/** Runs every `step`th seed from `first`: `SEEDS` sets how many, `SEED` picks one. */
export function runSeeds(first: number, step: number): void {
  const seeds = Array.from({ length: SEEDS }, (_, at) => at + 1).filter((seed) => seed % step === first % step)
  const chosen = SEED === undefined ? seeds : SEED % step === first % step ? [SEED] : []
  for (let at = 0; at < chosen.length; at += CHUNK) {
    const chunk = chosen.slice(at, at + CHUNK)
    it(`holds for seeds ${chunk[0]} to ${chunk.at(-1)}`, { timeout: 120_000 }, async () => {
      for (const seed of chunk) {
        const simulation = await simulate(seed)
        expect.soft(simulation.violations.length === 0 ? '' : report(seed, simulation)).toBe('')
      }
    })
  }
  if (chosen.length === 0) it.skip(`has nothing to do: another file runs seed ${SEED}`, () => {})
}
