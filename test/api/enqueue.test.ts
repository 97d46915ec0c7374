import { describe, expect, it } from 'vitest'
import { createTestBelfry } from '../../src/testing/index.js'

const NOW = '2026-01-01T00:00:00Z'

function setup(options = {}) {
  const kit = createTestBelfry({ now: NOW, ...options })
  const ran: unknown[] = []
  const job = kit.belfry.job('mail', { run: ({ payload }) => void ran.push(payload) })
  return { ...kit, ran, job }
}

describe('enqueue', () => {
  it('starts a run at once and returns its id', async () => {
    const { belfry, job, ran, advance } = setup()
    await belfry.start()
    const { outcome, run } = await job.enqueue({ to: 'ada' })
    expect(outcome).toBe('enqueued')
    await advance('1ms')
    expect(ran).toEqual([{ to: 'ada' }])
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'succeeded', origin: 'enqueue', payload: { to: 'ada' } })
  })

  it('starts a run after a delay, or at an instant, and never earlier', async () => {
    const { belfry, job, ran, advance } = setup()
    await belfry.start()
    await job.enqueue('in', { in: '3d' })
    await job.enqueue('at', { at: '2026-01-02T12:00:00Z' })
    await job.enqueue('past', { at: '2025-06-01T00:00:00Z' })
    await advance('1s')
    expect(ran).toEqual(['past'])
    await advance('35h59m58s')
    expect(ran).toEqual(['past'])
    await advance('1s')
    expect(ran).toEqual(['past', 'at'])
    await advance('36h')
    expect(ran).toEqual(['past', 'at', 'in'])
  })

  it('measures a delay by the store’s clock, not by the instance’s', async () => {
    const { belfry, job, ran, advance, clock } = setup()
    await belfry.start()
    const { run } = await job.enqueue('in', { in: '1h' })
    expect((await belfry.runs.get(run))?.readyAt).toBe(clock.now() + 3_600_000)
    await advance('1h')
    expect(ran).toEqual(['in'])
  })

  it('starts the highest priority first, then the oldest run', async () => {
    const { belfry, job, ran, advance } = setup({ concurrency: 1 })
    await job.enqueue('low', { priority: -1 })
    await job.enqueue('first')
    await job.enqueue('urgent', { priority: 10 })
    await job.enqueue('second')
    await belfry.start()
    await advance('1s')
    expect(ran).toEqual(['urgent', 'first', 'second', 'low'])
  })

  it('accepts a dedupe key only once while a run with it is unfinished, including delayed runs', async () => {
    const { belfry, job, ran, advance, runs } = setup()
    await belfry.start()
    const first = await job.enqueue(1, { key: 'ada', in: '1h' })
    expect(await job.enqueue(2, { key: 'ada' })).toEqual({ outcome: 'duplicate', run: first.run })
    expect(await job.enqueue(3, { key: 'bob' })).toMatchObject({ outcome: 'enqueued' })
    await advance('2h')
    expect(ran).toEqual([3, 1])
    expect(await job.enqueue(4, { key: 'ada' })).toMatchObject({ outcome: 'enqueued' })
    expect(await runs('mail')).toHaveLength(3)
  })

  it('scopes dedupe keys to a job: another job may use the same key', async () => {
    const { belfry, job } = setup()
    const other = belfry.job('sms', { run: () => null })
    await belfry.start()
    await job.enqueue(1, { key: 'ada', in: '1h' })
    expect(await other.enqueue(1, { key: 'ada' })).toMatchObject({ outcome: 'enqueued' })
  })

  it.each(['all', 'none'] as const)(
    'keeps refusing a key for `keyFor` after the run has ended, with keep %s',
    async (keep) => {
      const { belfry, advance } = createTestBelfry({ now: NOW })
      const job = belfry.job('mail', { keep, run: () => null })
      await belfry.start()
      const first = await job.enqueue(1, { key: 'ada', keyFor: '1d' })
      await advance('23h')
      expect(await job.enqueue(2, { key: 'ada' })).toEqual({ outcome: 'duplicate', run: first.run })
      await advance('2h')
      expect(await job.enqueue(3, { key: 'ada' })).toMatchObject({ outcome: 'enqueued' })
    },
  )

  it('enqueues many at once, with one result each, in order', async () => {
    const { belfry, job, ran, advance } = setup()
    await belfry.start()
    const results = await job.enqueueMany([
      { payload: 'a', key: 'same' },
      { payload: 'b', key: 'same' },
      { payload: 'c', in: '1h' },
      { payload: 'd', priority: 5 },
    ])
    expect(results.map(({ outcome }) => outcome)).toEqual(['enqueued', 'duplicate', 'enqueued', 'enqueued'])
    expect(results[1]?.run).toBe(results[0]?.run)
    await advance('1s')
    expect(ran).toEqual(['d', 'a'])
    await advance('1h')
    expect(ran).toEqual(['d', 'a', 'c'])
    expect(await job.enqueueMany([])).toEqual([])
  })

  it('enqueues none of many when one of them is invalid', async () => {
    const { belfry, job, runs } = setup()
    await belfry.start()
    const batch = job.enqueueMany([{ payload: 'good' }, { payload: 'bad', priority: 0.5 }])
    await expect(batch).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await runs('mail')).toEqual([])
  })

  it('makes a run that outlives the enqueuing instance', async () => {
    const { belfry, job, instance, advance, ran } = setup()
    const worker = instance()
    worker.job('mail', { run: ({ payload }) => void ran.push(['worker', payload]) })
    await belfry.start()
    await job.enqueue('later', { in: '1h' })
    await belfry.stop({ grace: 0 })
    await worker.start()
    await advance('1h')
    expect(ran).toEqual([['worker', 'later']])
  })

  it('refuses a transaction on a store that has none', async () => {
    const { belfry, job, runs } = setup()
    await belfry.start()
    await expect(job.enqueue(1, { tx: {} })).rejects.toMatchObject({ code: 'UNSUPPORTED' })
    expect(await runs('mail')).toEqual([])
  })
})
