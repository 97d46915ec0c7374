import { describe, expect, it } from 'vitest'
import type { AcquireRequest } from '../../core/lease.js'
import { LockTurns } from './lock-turns.js'
import type { Turn } from './take-turn.js'

const TAKEN = { had: true, isInDoubt: false, handed: [], now: 1, until: 2 }

/** Steps that are answered when the test says so. */
function scene() {
  const steps: { readonly step: Turn; answer(): void; refuse(error: Error): void }[] = []
  const turns = new LockTurns((step) => {
    return new Promise((resolve, reject) => {
      steps.push({ step, answer: () => resolve(TAKEN), refuse: reject })
    })
  })
  const seen = (at: number) =>
    expect.poll(() => {
      const { release, places } = steps[at]?.step ?? { places: [] }
      return [release?.holder, ...places.map(({ holder }) => holder)]
    })
  return { turns, steps, seen }
}

const place = (holder: string, name = 'lock'): AcquireRequest => ({ name, holder, ttlMs: 1, permits: 1, floor: 0 })
const release = (holder: string) => ({ name: 'lock', holder })

describe('turns at a name', () => {
  it('share a step when they come together', async () => {
    const { turns, steps, seen } = scene()
    const calls = [turns.place(place('ada')), turns.release(release('bob')), turns.place(place('cleo'))]
    await seen(0).toEqual(['bob', 'ada', 'cleo'])
    steps[0]?.answer()
    expect(await Promise.all(calls)).toEqual([TAKEN, TAKEN, TAKEN])
  })

  it('wait for the step that is under way, and two releases are two steps', async () => {
    const { turns, steps, seen } = scene()
    const calls = [turns.release(release('ada'))]
    await seen(0).toEqual(['ada'])
    calls.push(turns.release(release('bob')), turns.place(place('ada again')), turns.release(release('cleo')))
    expect(steps).toHaveLength(1)
    steps[0]?.answer()
    await seen(1).toEqual(['bob', 'ada again'])
    steps[1]?.answer()
    await seen(2).toEqual(['cleo'])
    steps[2]?.answer()
    await Promise.all(calls)
  })

  it('at different names do not wait for each other', async () => {
    const { turns, steps, seen } = scene()
    const calls = [turns.place(place('ada')), turns.place(place('bob', 'other'))]
    await seen(0).toEqual([undefined, 'ada'])
    await seen(1).toEqual([undefined, 'bob'])
    for (const { answer } of steps) answer()
    await Promise.all(calls)
  })

  it('that fail fail for all who shared them, and the next goes on', async () => {
    const { turns, steps, seen } = scene()
    const calls = [turns.release(release('ada')), turns.place(place('bob'))]
    const fates = Promise.allSettled(calls)
    await seen(0).toEqual(['ada', 'bob'])
    const next = turns.place(place('cleo'))
    steps[0]?.refuse(new Error('the connection broke'))
    expect((await fates).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await seen(1).toEqual([undefined, 'cleo'])
    steps[1]?.answer()
    expect(await next).toEqual(TAKEN)
  })
})
