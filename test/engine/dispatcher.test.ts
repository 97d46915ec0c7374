import { describe, expect, it } from 'vitest'
import { TokenFloor } from '../../src/core/locks/token.js'
import { silentLogger } from '../../src/core/logger.js'
import type { JobDefinition } from '../../src/engine/definitions.js'
import { Events } from '../../src/engine/events.js'
import { Health } from '../../src/engine/health.js'
import { Attempts } from '../../src/engine/runs/attempts.js'
import { BurstPriority } from '../../src/engine/runs/burst-priority.js'
import { UNPACED } from '../../src/engine/runs/claim-pace.js'
import { Dispatcher } from '../../src/engine/runs/dispatcher.js'
import { Settler } from '../../src/engine/runs/settler.js'
import { Slots } from '../../src/engine/runs/slots.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'

/** A dispatcher with runs to claim; records the runs that its handler started and the limit of each claim. */
async function setup({ runs = 1, concurrency = 10, batch = 10, ofJob = 10_000 } = {}) {
  const clock = manualClock()
  const whole = memory({ clock })
  const asked: number[] = []
  const freed: number[] = []
  const underWay = { now: 0, most: 0 }
  const claim: typeof whole.runs.claim = async (request) => {
    asked.push(request.limit)
    underWay.now += 1
    underWay.most = Math.max(underWay.most, underWay.now)
    const result = await whole.runs.claim(request)
    underWay.now -= 1
    return result
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
    concurrency: ofJob,
  }
  const membership = { id: 'first' }
  await store.instances.join({ id: membership.id, host: 'h', pid: 1, zoneData: '', jobs: [] }, 1_000)
  const run = { target: { job: 'report' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' } as const
  await store.runs.enqueue(Array.from({ length: runs }, () => run))
  const burst = new BurstPriority(clock)
  const attempts = new Attempts({
    ...{ store, clock, events },
    settler: new Settler({ store, clock, health: new Health(clock, silentLogger, events), batch: 10, burst }),
    floor: new TokenFloor(clock),
    instance: () => membership.id,
  })
  const dispatcher = new Dispatcher({
    ...{ store, clock, attempts, burst, log: silentLogger, concurrency, batch, pollMs: 1_000 },
    ...{ onFree: () => void freed.push(began.length), pace: UNPACED, onMayBlock: () => {} },
    jobs: new Map([['report', job]]),
    starts: () => true,
    slots: new Slots(concurrency),
    threads: { run: () => Promise.reject(new Error('no threads')), end: async () => true },
  })
  return { dispatcher, attempts, membership, began, asked, freed, underWay, clock, store, run }
}

describe('a dispatcher', () => {
  it('starts the runs that it claimed', async () => {
    const { dispatcher, began, clock } = await setup()
    await dispatcher.startRuns()
    await clock.settle()
    expect(began).toHaveLength(1)
  })

  it('starts no run that its instance claimed under an earlier id', async () => {
    const { dispatcher, attempts, membership, began, clock } = await setup()
    const step = dispatcher.startRuns()
    membership.id = 'second'
    await step
    await clock.settle()
    expect(began).toEqual([])
    expect(attempts.all.size).toBe(0)
  })

  it('starts a burst with small claims, and the remainder with large ones', async () => {
    const { dispatcher, began, asked, clock } = await setup({ runs: 3_000, concurrency: 5_000, batch: 1_000 })
    while ((await dispatcher.startRuns()) === 0);
    await clock.settle()
    expect(asked).toEqual([512, 512, 1_000, 1_000, 512, 512])
    expect(began).toHaveLength(3_000)
    await dispatcher.startRuns()
    expect(asked.at(-1)).toBe(512)
  })

  it('sends one claim when little is due, and two at a time when one claim was not enough', async () => {
    const { dispatcher, underWay, clock, store, run } = await setup({ runs: 5, concurrency: 5_000, batch: 1_000 })
    const startAll = async () => {
      underWay.most = 0
      while ((await dispatcher.startRuns()) === 0);
      await clock.settle()
      return underWay.most
    }
    const enqueue = async (count: number, delayMs = 0) => {
      await store.runs.enqueue(Array.from({ length: count }, () => ({ ...run, delayMs })))
      if (delayMs === 0) return
      await startAll()
      await clock.advance(delayMs)
    }
    expect(await startAll()).toBe(1)
    await enqueue(1_200)
    expect(await startAll()).toBe(2)
    // The last claim was not full and no run is expected now, so one claim is enough.
    expect(await startAll()).toBe(1)
    await enqueue(600, 100)
    expect(await startAll()).toBe(2)
    await enqueue(5, 100)
    expect(await startAll()).toBe(1)
    await enqueue(600, 100)
    expect(await startAll()).toBe(1)
  })

  it('never has more runs in progress than its concurrency, however many claims it sends', async () => {
    const { dispatcher, began, asked, clock } = await setup({ runs: 5_000, concurrency: 1_300, batch: 1_000 })
    for (let step = 0; step < 2; step += 1) await dispatcher.startRuns()
    expect(asked).toEqual([512, 512, 276])
    expect(began).toHaveLength(1_300)
    await clock.settle()
  })

  it('claims once more after claims that raced each other', async () => {
    const { dispatcher, began, store, clock } = await setup({ runs: 1_300, concurrency: 5_000, batch: 1_000 })
    const { claim } = store.runs
    let calls = 0
    // Two concurrent claims of a store with several shards may pick the same runs, and leave other due runs unclaimed.
    store.runs.claim = (request) => {
      calls += 1
      return claim(calls === 3 || calls === 4 ? { ...request, limit: 100 } : request)
    }
    while ((await dispatcher.startRuns()) === 0);
    await clock.settle()
    expect(began).toHaveLength(1_300)
  })

  it('calls onFree only for slots that a run may be waiting for', async () => {
    const few = await setup({ runs: 5, concurrency: 10 })
    await few.dispatcher.startRuns()
    await few.clock.settle()
    expect(few.began).toHaveLength(5)
    expect(few.freed).toEqual([])
    const crowded = await setup({ runs: 5, concurrency: 10, ofJob: 2 })
    await crowded.dispatcher.startRuns()
    await crowded.clock.settle()
    expect(crowded.freed).toEqual([2])
  })

  it('lets finished runs settle after it was closed, also with a claim in flight', async () => {
    const { dispatcher, attempts, began, clock } = await setup({ runs: 3_000, concurrency: 5_000, batch: 1_000 })
    const step = dispatcher.startRuns()
    dispatcher.close()
    await step
    await clock.settle()
    expect(began).toHaveLength(512)
    expect(attempts.all.size).toBe(0)
  })

  it('lets finished runs settle when their job has no free slot', async () => {
    const { dispatcher, attempts, clock } = await setup({ runs: 600, concurrency: 5_000, batch: 1_000, ofJob: 512 })
    await dispatcher.startRuns()
    await dispatcher.startRuns()
    await clock.settle()
    expect(attempts.all.size).toBe(0)
  })

  it('claims no more runs than can start at once', async () => {
    const { dispatcher, asked } = await setup({ runs: 20, concurrency: 7, batch: 1_000 })
    await dispatcher.startRuns()
    expect(asked).toEqual([7])
  })
})

describe('concurrent claims on one instance’s attempts', () => {
  it('run in parallel; a claim counts as answered after all earlier ones were answered', async () => {
    const { attempts, store } = await setup({ runs: 2 })
    const answers: (() => void)[] = []
    const { claim } = store.runs
    store.runs.claim = async (request) => {
      await new Promise<void>((resolve) => answers.push(resolve))
      return claim(request)
    }
    const wish = { limit: 1, jobs: [{ name: 'report', limit: 1 }], sinks: [] }
    const [first, second] = [attempts.claim(wish, () => {}), attempts.claim(wish, () => {})]
    expect(attempts.claimsSettled).toBe(0)
    answers[1]?.()
    expect((await second).runs).toHaveLength(1)
    expect(attempts.claimsSettled).toBe(0)
    answers[0]?.()
    expect((await first).runs).toHaveLength(1)
    expect(attempts.claimsSettled).toBe(2)
    expect(attempts.all.size).toBe(2)
  })

  it('continue after a failed claim', async () => {
    const { attempts, store } = await setup()
    const { claim } = store.runs
    store.runs.claim = () => Promise.reject(new Error('no store'))
    const wish = { limit: 1, jobs: [{ name: 'report', limit: 1 }], sinks: [] }
    await expect(attempts.claim(wish, () => {})).rejects.toThrow('no store')
    expect(attempts.claimsSettled).toBe(1)
    store.runs.claim = claim
    expect((await attempts.claim(wish, () => {})).runs).toHaveLength(1)
  })
})
