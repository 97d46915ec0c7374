import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../src/core/logger.js'
import { TokenFloor } from '../../src/core/token.js'
import { Attempts } from '../../src/engine/attempts.js'
import { Dispatcher } from '../../src/engine/dispatcher.js'
import { Events } from '../../src/engine/events.js'
import { Health } from '../../src/engine/health.js'
import { Rush } from '../../src/engine/rush.js'
import { Settler } from '../../src/engine/settler.js'
import type { JobDefinition } from '../../src/engine/work.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'

/** A dispatcher with runs to claim, those that its handler began, and how many each claim asked for. */
async function scene({ runs = 1, concurrency = 10, batch = 10 } = {}) {
  const clock = manualClock()
  const whole = memory({ clock })
  const asked: number[] = []
  const claim: typeof whole.runs.claim = (request) => {
    asked.push(request.limit)
    return whole.runs.claim(request)
  }
  const store = { ...whole, runs: { ...whole.runs, claim } }
  const events = new Events(silentLogger)
  const began: string[] = []
  const job: JobDefinition = {
    name: 'report',
    parse: async (payload) => payload,
    run: ({ run }) => void began.push(run.id),
    retry: { attempts: 1, delayMs: () => 0 },
    timeoutMs: 1_000,
    keep: 'all',
    concurrency,
  }
  const membership = { id: 'first' }
  await store.instances.join({ id: membership.id, host: 'h', pid: 1, zoneData: '', jobs: [] }, 1_000)
  const run = { target: { job: 'report' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' } as const
  await store.runs.enqueue(Array.from({ length: runs }, () => run))
  const rush = new Rush(clock)
  const attempts = new Attempts({
    ...{ store, clock, events },
    settler: new Settler(store, clock, new Health(clock, silentLogger, events), 10, rush),
    floor: new TokenFloor(),
    instance: () => membership.id,
  })
  const dispatcher = new Dispatcher({
    ...{ store, attempts, rush, log: silentLogger, concurrency, batch, pollMs: 1_000, onFree: () => {} },
    jobs: new Map([['report', job]]),
  })
  return { dispatcher, attempts, membership, began, asked, clock }
}

describe('a dispatcher', () => {
  it('begins what it claimed', async () => {
    const { dispatcher, began, clock } = await scene()
    await dispatcher.startRuns()
    await clock.settle()
    expect(began).toHaveLength(1)
  })

  it('begins nothing that its instance claimed in a former life', async () => {
    const { dispatcher, attempts, membership, began, clock } = await scene()
    const step = dispatcher.startRuns()
    membership.id = 'second'
    await step
    await clock.settle()
    expect(began).toEqual([])
    expect(attempts.all.size).toBe(0)
  })

  it('starts a crowd in small claims, and what these do not reach in large ones', async () => {
    const { dispatcher, began, asked, clock } = await scene({ runs: 3_000, concurrency: 5_000, batch: 1_000 })
    while ((await dispatcher.startRuns()) === 0);
    await clock.settle()
    expect(asked).toEqual([500, 500, 1_000, 1_000, 1_000])
    expect(began).toHaveLength(3_000)
    await dispatcher.startRuns()
    expect(asked.at(-1)).toBe(500)
  })

  it('claims no more than can begin at once', async () => {
    const { dispatcher, asked } = await scene({ runs: 20, concurrency: 7, batch: 1_000 })
    await dispatcher.startRuns()
    expect(asked).toEqual([7])
  })
})

describe('claims of those who share the attempts of an instance', () => {
  it('take turns, so that their numbers reach the store in order and none counts as answered too early', async () => {
    const { attempts, clock } = await scene({ runs: 2 })
    const jobs = [{ name: 'report', limit: 1 }]
    const wish = () => ({ limit: 1, jobs, sinks: [] })
    const begun: number[] = []
    const settled: number[] = []
    const claim = () =>
      attempts.claim(wish, () => {
        begun.push(attempts.all.size)
        settled.push(attempts.claimsSettled)
      })
    const both = [claim(), claim()]
    await clock.settle()
    const results = await Promise.all(both)
    expect(results.map((result) => result?.runs.length)).toEqual([1, 1])
    expect(begun).toEqual([1, 2])
    expect(settled).toEqual([0, 1])
    expect(attempts.claimsSettled).toBe(2)
  })

  it('go on after one that failed', async () => {
    const { attempts } = await scene()
    const failing = attempts.claim(
      () => {
        throw new Error('no wish')
      },
      () => {},
    )
    await expect(failing).rejects.toThrow('no wish')
    expect(
      await attempts.claim(
        () => undefined,
        () => {},
      ),
    ).toBeUndefined()
  })
})
