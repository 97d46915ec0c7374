/** How the engine handles a store that proves liveness by more than the heartbeat. */
import { describe, expect, it } from 'vitest'
import { type Belfry, createBelfry } from '../../src/belfry.js'
import { silentLogger } from '../../src/core/logger.js'
import type { Store } from '../../src/core/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'

function setup(options: { readonly proves: boolean }) {
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const store = memory({ clock })
  const calls = { rescue: 0, prune: 0 }
  const late: { answer?: Promise<void> } = {}
  const listeners = new Set<(why: string) => void>()
  const proving: Store = {
    ...store,
    runs: {
      ...store.runs,
      rescue: (limit) => {
        calls.rescue += 1
        return store.runs.rescue(limit)
      },
      prune: (request) => {
        calls.prune += 1
        return store.runs.prune(request)
      },
    },
    instances: {
      ...store.instances,
      beat: async (request) => {
        if (late.answer === undefined) return store.instances.beat(request)
        await late.answer
        return { alive: false, lost: [], cancel: [], now: clock.now() }
      },
    },
    ...(options.proves ? { onLost } : {}),
  }
  const belfry: Belfry = createBelfry({ store: proving, clock, lease: '60s', logger: silentLogger })
  const lose = () => {
    for (const listener of listeners) listener('the proof is gone')
  }
  return { belfry, clock, calls, late, lose, listeners }

  function onLost(listener: (why: string) => void): () => void {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
}

describe('an instance that can no longer prove that it is alive', () => {
  it('aborts its attempts, loses its locks, and joins again under a new id', async () => {
    const { belfry, clock, lose, listeners } = setup({ proves: true })
    const reasons: unknown[] = []
    const job = belfry.job('work', {
      run: ({ signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason.code)
            resolve()
          })
        }),
    })
    await belfry.start()
    await job.enqueue()
    await clock.advance(1_500)
    const lock = await belfry.lock('a', { ttl: '60s' })
    const before = belfry.instance
    lose()
    expect(reasons).toEqual(['LEASE_LOST'])
    expect(lock?.signal.reason).toMatchObject({ code: 'LEASE_LOST', message: /the proof is gone/ })
    await clock.advance(100)
    expect(belfry.instance).not.toBe(before)
    expect((await belfry.instances()).map(({ id }) => id)).toContain(belfry.instance)
    const stopped = belfry.stop({ grace: 0 })
    await clock.advance(10_000)
    await stopped
    expect(listeners.size).toBe(0)
  })

  it('gives up once, although the answer to an earlier heartbeat arrives later', async () => {
    const { belfry, clock, late, lose } = setup({ proves: true })
    const ids: string[] = []
    belfry.on('instance:lost', ({ instance }) => ids.push(instance))
    await belfry.start()
    await clock.advance(1_000)
    let answer = () => {}
    late.answer = new Promise((resolve) => {
      answer = resolve
    })
    await clock.advance(20_000)
    lose()
    delete late.answer
    answer()
    await clock.advance(120_000)
    expect(ids).toHaveLength(1)
    const stopped = belfry.stop({ grace: 0 })
    await clock.advance(10_000)
    await stopped
  })
})

describe('the sweeper', () => {
  it('checks for dead instances twice a second when the store detects them at once, and does its other work no more often', async () => {
    const [often, rarely] = [setup({ proves: true }), setup({ proves: false })]
    for (const { belfry, clock } of [often, rarely]) {
      await belfry.start()
      await clock.advance(240_000)
    }
    expect(often.calls.rescue).toBeGreaterThan(240 * 2)
    expect(rarely.calls.rescue).toBeLessThan(40)
    expect(Math.abs(often.calls.prune - rarely.calls.prune)).toBeLessThanOrEqual(1)
    for (const { belfry, clock } of [often, rarely]) {
      const stopped = belfry.stop({ grace: 0 })
      await clock.advance(10_000)
      await stopped
    }
  })
})
