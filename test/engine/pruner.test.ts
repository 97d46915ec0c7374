import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/core/clock.js'
import { pruner } from '../../src/engine/runs/pruner.js'
import { memory } from '../../src/stores/memory/index.js'

const LEASE_MS = 15_000
const BATCH = 100

/** A store with `old` rows to prune, where each step takes `stepMs`. */
function setup(old: number, stepMs: number) {
  let [left, at] = [old, 0]
  const clock: Clock = { now: () => at, monotonic: () => at, after: () => () => {} }
  const store = memory({ clock })
  const prune = async ({ limit }: { readonly limit: number }) => {
    const pruned = Math.min(left, limit)
    left -= pruned
    at += stepMs
    return pruned
  }
  const history = { maxAgeMs: 1, maxRuns: 1 }
  const pruning = { ...store, runs: { ...store.runs, prune } }
  const step = pruner({ store: pruning, clock, leaseMs: LEASE_MS, batch: BATCH, history, instance: () => 'one' })
  return { step, left: () => left }
}

describe('the pruner', () => {
  it('polls rarely while there is little to prune', async () => {
    const { step } = setup(BATCH - 1, 10)
    for (let round = 0; round < 3; round += 1) {
      const rest = await step()
      expect(rest).toBeGreaterThanOrEqual(LEASE_MS)
      expect(rest).toBeLessThanOrEqual(2 * LEASE_MS)
    }
  })

  it('returns soon while its steps are full, and rests four times as long as they took', async () => {
    const { step, left } = setup(5 * BATCH, 100)
    for (let round = 0; round < 5; round += 1) expect(await step()).toBe(400)
    expect(left()).toBe(0)
    expect(await step()).toBeGreaterThanOrEqual(LEASE_MS)
  })

  it('rests briefly after steps that took no time', async () => {
    const { step } = setup(2 * BATCH, 0)
    expect(await step()).toBe(50)
  })
})
