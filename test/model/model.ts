import fc from 'fast-check'
import { expect } from 'vitest'
import type { Clock } from '../../src/core/clock.js'
import type { Store } from '../../src/core/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { commandsFor, SHARDED, UNSHARDED } from './commands.js'
import { type Pair, side, snapshot } from './pair.js'

export interface ModelOptions {
  /** Opens an empty store that uses the given clock. */
  readonly open: (clock: Clock) => Promise<{ readonly store: Store; readonly close?: () => Promise<void> }>
  readonly runs: number
  readonly seed?: number
  /** Whether the store is sharded (3 or 6 shards). */
  readonly isSharded?: boolean
}

/** Every story begins with two live instances; otherwise most claims would return nothing. */
async function joinInstances(store: Store): Promise<void> {
  await store.open()
  const info = { host: 'h', pid: 1, zoneData: 'z', jobs: [{ name: 'j1' }, { name: 'j2' }] }
  for (const id of ['i1', 'i2']) await store.instances.join({ id, ...info }, 10_000)
}

/** The seed is fixed unless `BELFRY_MODEL_SEED=7` sets another; `BELFRY_MODEL_RUNS=1000` sets the number of stories. */
const SEED = Number(process.env.BELFRY_MODEL_SEED ?? 20_261_116)

/** Runs the same random story on a store and on the memory model, and fails when their answers or contents differ. */
export async function checkAgainstModel({ open, runs, seed = SEED, isSharded = false }: ModelOptions): Promise<void> {
  const commands = commandsFor(isSharded ? SHARDED : UNSHARDED)
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 60, size: 'max' }), async (story) => {
      const clock = manualClock(Date.UTC(2026, 0, 1))
      const opened = await open(clock)
      try {
        const pair: Pair = {
          model: side(memory({ clock }), isSharded),
          real: side(opened.store, isSharded),
          claimed: [],
          claims: new Map(),
        }
        for (const { store } of [pair.model, pair.real]) await joinInstances(store)
        const testClock = { elapse: (ms: number) => clock.advance(ms) }
        await fc.asyncModelRun(() => ({ model: pair, real: testClock }), story)
        expect(await snapshot(pair.real)).toEqual(await snapshot(pair.model))
      } finally {
        await opened.close?.()
      }
    }),
    { numRuns: runs, seed },
  )
}
