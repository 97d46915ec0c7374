import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../src/core/logger.js'
import { TokenFloor } from '../../src/core/token.js'
import { Dispatcher } from '../../src/engine/dispatcher.js'
import { Events } from '../../src/engine/events.js'
import { Health } from '../../src/engine/health.js'
import { Settler } from '../../src/engine/settler.js'
import type { JobDefinition } from '../../src/engine/work.js'
import { memory } from '../../src/stores/memory/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'

/** A dispatcher with one run to claim, and the runs that its handler began. */
async function scene() {
  const clock = manualClock()
  const store = memory({ clock })
  const events = new Events(silentLogger)
  const began: string[] = []
  const job: JobDefinition = {
    name: 'report',
    parse: async (payload) => payload,
    run: ({ run }) => void began.push(run.id),
    retry: { attempts: 1, delayMs: () => 0 },
    timeoutMs: 1_000,
    keep: 'all',
    concurrency: 10,
  }
  const membership = { id: 'first' }
  await store.instances.join({ id: membership.id, host: 'h', pid: 1, zoneData: '', jobs: [] }, 1_000)
  await store.runs.enqueue([{ target: { job: 'report' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all' }])
  const dispatcher = new Dispatcher({
    ...{ store, clock, events, log: silentLogger, concurrency: 10, pollMs: 1_000, onFree: () => {} },
    settler: new Settler(store, clock, new Health(clock, silentLogger, events), 10),
    floor: new TokenFloor(),
    jobs: new Map([['report', job]]),
    sinks: new Map(),
    instance: () => membership.id,
  })
  return { dispatcher, membership, began, clock }
}

describe('a dispatcher', () => {
  it('begins what it claimed', async () => {
    const { dispatcher, began, clock } = await scene()
    await dispatcher.startRuns()
    await clock.settle()
    expect(began).toHaveLength(1)
  })

  it('begins nothing that its instance claimed in a former life', async () => {
    const { dispatcher, membership, began, clock } = await scene()
    const step = dispatcher.startRuns()
    membership.id = 'second'
    await step
    await clock.settle()
    expect(began).toEqual([])
    expect(dispatcher.attempts.size).toBe(0)
  })
})
