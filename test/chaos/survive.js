// @ts-check
/** The short form of the chaos test, for `npm test`. */
import { expect } from 'vitest'
import { chaos } from './chaos.js'
import { repeatCommand } from './repeat-command.js'

/**
 * Runs a chaos test and expects no violation. If only time limits were exceeded, it runs once more, because a stalled
 * disk can cause that. A violation of safety fails at once.
 * @param {Omit<import('./chaos.js').ChaosOptions, 'store' | 'say'>} settings
 * @param {() => import('./store-setups.js').StoreSetupKind} makeSetup for each try
 * @returns {Promise<Record<string, number>>} the counts
 */
export async function survives(settings, makeSetup) {
  const first = await tryOnce(settings, makeSetup())
  if (first.late.length === 0) return first.counts
  console.log(`once more, because of a bound of time: ${first.late[0]}`)
  const second = await tryOnce(settings, makeSetup())
  expect(second.late).toEqual([])
  return second.counts
}

/**
 * @param {Omit<import('./chaos.js').ChaosOptions, 'store' | 'say'>} settings
 * @param {import('./store-setups.js').StoreSetupKind} store
 */
async function tryOnce(settings, store) {
  /** @type {string[]} */
  const story = []
  const { violations, late, counts } = await chaos({ ...settings, store, say: (line) => story.push(line) })
  console.log(JSON.stringify({ seed: settings.seed, ...counts }))
  if (violations.length + late.length > 0) {
    console.error([...story, `repeat with: ${repeatCommand({ ...settings, store: store.name })}`].join('\n'))
  }
  expect(violations).toEqual([])
  for (const checked of ['inTurn', 'compared']) expect(counts[checked], checked).toBeGreaterThan(0)
  return { late, counts }
}
