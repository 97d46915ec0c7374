import { describe, expect, it } from 'vitest'
import type { Run } from '../../src/index.js'
import { createTestBelfry } from '../../src/testing/index.js'
import { warningsDuring } from '../warnings-during.js'

function setup() {
  const kit = createTestBelfry()
  const job = kit.belfry.job('slow', {
    retry: { attempts: 1 },
    run: async ({ payload }) => {
      await new Promise<void>((resolve) => kit.clock.after(60_000, resolve))
      if (payload === 'bad') throw new Error('no')
      return payload
    },
  })
  return { ...kit, job }
}

describe('runs.wait', () => {
  it('resolves with the run when it has ended, in any state', async () => {
    const { belfry, job, advance } = setup()
    await belfry.start()
    const good = await job.enqueue('good')
    const bad = await job.enqueue('bad')
    const ended: (Run | undefined)[] = []
    const waits = [good, bad].map(async ({ run }) => ended.push(await belfry.runs.wait(run)))
    await advance('59s')
    expect(ended).toEqual([])
    await advance('2s')
    await Promise.all(waits)
    expect(ended).toMatchObject([
      { id: good.run, state: 'succeeded', result: 'good' },
      { id: bad.run, state: 'failed', error: { message: 'no' } },
    ])
    // For a run that has ended, wait() resolves at once, even with a timeout of 0.
    expect(await belfry.runs.wait(good.run, { timeout: 0 })).toMatchObject({ state: 'succeeded' })
  })

  it('rejects after its timeout, with the run’s state', async () => {
    const { belfry, job, advance } = setup()
    await belfry.start()
    const { run } = await job.enqueue('good')
    const wait = expect(belfry.runs.wait(run, { timeout: '30s' })).rejects.toMatchObject({
      code: 'WAIT_TIMEOUT',
      message: `run ${run} is still running after 30s`,
    })
    await advance('31s')
    await wait
    await advance('1m')
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'succeeded' })
  })

  it('is undefined for an unknown run', async () => {
    const { belfry } = setup()
    await belfry.start()
    expect(await belfry.runs.wait('nobody')).toBeUndefined()
  })

  it('lets many callers wait at once, and Node.js takes their listeners for no leak', async () => {
    const { belfry, job, advance } = setup()
    await belfry.start()
    const { run } = await job.enqueue('good')
    const warnings = await warningsDuring(async () => {
      const waits = Array.from({ length: 20 }, () => belfry.runs.wait(run))
      await advance('2m')
      await Promise.all(waits)
    })
    expect(warnings).toEqual([])
  })

  it('works on an instance that runs no jobs', async () => {
    const { belfry, instance, job, advance } = setup()
    const web = instance({ roles: [] })
    await web.start()
    await belfry.start()
    const { run } = await job.enqueue('good')
    const wait = web.runs.wait(run)
    await advance('2m')
    expect(await wait).toMatchObject({ result: 'good' })
  })
})

describe('runs.list', () => {
  it('is newest first, filtered by job, schedule and state, page by page', async () => {
    const { belfry, job, advance } = setup()
    const quick = belfry.job('quick', { run: () => null })
    belfry.schedule('quick/hourly', { every: '1h', job: quick })
    await belfry.start()
    for (const payload of ['a', 'b', 'bad']) await job.enqueue(payload)
    await job.enqueue('later', { in: '1d' })
    await advance('2h30m')
    const payloads = async (query: Parameters<typeof belfry.runs.list>[0]) =>
      (await belfry.runs.list(query)).items.map(({ payload }) => payload)
    expect(await payloads({ job: 'slow' })).toEqual(['later', 'bad', 'b', 'a'])
    expect(await payloads({ job: 'slow', state: 'succeeded' })).toEqual(['b', 'a'])
    expect(await payloads({ job: 'slow', state: ['failed', 'ready'] })).toEqual(['later', 'bad'])
    expect((await belfry.runs.list({ schedule: 'quick/hourly' })).items).toHaveLength(2)
    const first = await belfry.runs.list({ job: 'slow', limit: 3 })
    expect(first.items).toHaveLength(3)
    expect(await payloads({ job: 'slow', limit: 3, ...(first.next ? { after: first.next } : {}) })).toEqual(['a'])
  })
})
