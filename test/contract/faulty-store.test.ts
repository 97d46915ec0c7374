import { describe, expect, it } from 'vitest'
import { memory } from '../../src/stores/memory/index.js'
import { type FaultRates, faultyStore } from '../../src/testing/faulty-store.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { seededRandom } from '../../src/testing/random.js'
import { contractCases, runCase } from '../../src/testing/store-contract.js'

function open(faults: FaultRates, seed = 1) {
  const clock = manualClock()
  const inner = memory({ clock })
  const store = faultyStore(inner, { random: seededRandom(seed), clock, faults })
  return { store, inner, clock, elapse: clock.advance }
}

const run = { target: { job: 'work' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' } as const

describe('a faulty store', () => {
  it('does nothing when a call is dropped', async () => {
    const { store, inner } = open({ drop: 1 })
    await expect(store.runs.enqueue([run])).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    expect((await inner.runs.list({ limit: 10 })).items).toEqual([])
  })

  it('has executed the call when only the answer is lost', async () => {
    const { store, inner } = open({ failAfterApply: 1 })
    await expect(store.runs.enqueue([run])).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' })
    expect((await inner.runs.list({ limit: 10 })).items).toHaveLength(1)
  })

  it('delays calls on the given clock', async () => {
    const { store, clock } = open({ delay: 1, maxDelayMs: 1_000 })
    let answered = false
    const answer = store.now().then(() => {
      answered = true
    })
    await clock.settle()
    expect(answered).toBe(false)
    await clock.advance(2_000)
    await answer
  })

  it('delays hints', async () => {
    const { store } = open({ loseHint: 1 })
    const wakes: string[] = []
    store.subscribe((wake) => wakes.push(wake))
    await store.runs.enqueue([run])
    expect(wakes).toEqual([])
  })

  it('is an ordinary store when switched off', async () => {
    const { store } = open({ drop: 1, failAfterApply: 1, delay: 1, loseHint: 1 })
    store.setFaulty(false)
    await expect(store.runs.enqueue([run])).resolves.toMatchObject([{ outcome: 'enqueued' }])
  })

  it('repeats its faults for the same seed', async () => {
    const outcomes = async (seed: number) => {
      const { store } = open({ drop: 0.3 }, seed)
      const calls = Array.from({ length: 40 }, () => store.now().then(Boolean, () => false))
      return (await Promise.all(calls)).join()
    }
    expect(await outcomes(7)).toBe(await outcomes(7))
    expect(await outcomes(7)).not.toBe(await outcomes(8))
  })
})

/** Contract tests that count what a single call does. A store that receives each call twice cannot pass them. */
const SEES_SINGLE_CALLS = /advance|takes no more than its limit|bounded steps|behind the others|a batch takes|rescue/

describe('a store that receives each call twice still keeps the contract', () => {
  for (const test of contractCases.filter(({ name, area }) => !SEES_SINGLE_CALLS.test(`${area} ${name}`))) {
    it(`${test.area}: ${test.name}`, () => runCase(test, async () => open({ duplicate: 1 })))
  }
})
