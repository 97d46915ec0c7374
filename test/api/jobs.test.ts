import { describe, expect, it } from 'vitest'
import type { HandlerContext, StandardSchema } from '../../src/index.js'
import { createTestBelfry } from '../../src/testing/index.js'

interface Order {
  readonly id: number
  readonly note?: string
}

/** A schema with the behaviour of zod or valibot: it validates, trims, and adds a default. */
const order: StandardSchema<Order, Required<Order>> = {
  '~standard': {
    validate(value) {
      const { id, note = 'none' } = (value ?? {}) as Record<string, unknown>
      const issues = [
        ...(typeof id === 'number' ? [] : [{ message: 'expected a number', path: ['id'] }]),
        ...(typeof note === 'string' ? [] : [{ message: 'expected text', path: [{ key: 'note' }] }]),
      ]
      return issues.length > 0 ? { issues } : { value: { id: id as number, note: (note as string).trim() } }
    },
  },
}

describe('jobs', () => {
  it('give the handler its payload, the nominal tick, an event id, a token and an abort signal', async () => {
    const { belfry, advance } = createTestBelfry({ now: '2026-03-01T08:59:00Z' })
    const seen: HandlerContext<unknown>[] = []
    belfry.job('digest', { run: (context) => void seen.push(context) })
    belfry.schedule('digest/eu', { cron: '0 9 * * *', job: 'digest', payload: { region: 'eu' }, jitter: '30s' })
    await belfry.start()
    await advance('10m')
    expect(seen).toHaveLength(1)
    const [context] = seen
    expect(context).toMatchObject({ payload: { region: 'eu' }, tick: new Date('2026-03-01T09:00:00Z') })
    expect(context?.event).toEqual({
      id: 'digest/eu-1772355600',
      generated_at: '2026-03-01T09:00:00.000Z',
      schedule_id: 'digest/eu',
      payload: { region: 'eu' },
    })
    expect(context?.run).toMatchObject({ schedule: 'digest/eu', origin: 'tick', attempt: 1 })
    expect(context?.token).toBeGreaterThan(0)
    expect(context?.signal.aborted).toBe(false)
  })

  it('store the handler’s return value as the result, and use the same event id in every attempt', async () => {
    const { belfry, advance, runs } = createTestBelfry()
    const events: unknown[] = []
    const tokens: number[] = []
    const job = belfry.job('add', {
      run: ({ event, token, run }) => {
        events.push(event)
        tokens.push(token)
        if (run.attempt < 3) throw new Error('again')
        return { sum: 3, at: new Date(0) }
      },
    })
    await belfry.start()
    const { run } = await job.enqueue({ a: 1, b: 2 })
    await advance('1m')
    expect((await runs('add'))[0]).toMatchObject({ result: { sum: 3, at: '1970-01-01T00:00:00.000Z' }, attempt: 3 })
    expect(new Set(events.map((event) => JSON.stringify(event))).size).toBe(1)
    expect(events[0]).toMatchObject({ id: run, payload: { a: 1, b: 2 } })
    expect(tokens).toEqual([...tokens].sort((one, other) => one - other))
    expect(new Set(tokens).size).toBe(3)
  })

  it('fail without a retry when their result cannot be stored', async () => {
    const { belfry, advance, runs } = createTestBelfry()
    let calls = 0
    const job = belfry.job('big', {
      run: () => {
        calls += 1
        return { count: 1n }
      },
    })
    await belfry.start()
    await job.enqueue(null)
    await advance('1h')
    expect(calls).toBe(1)
    const [run] = await runs('big')
    expect(run).toMatchObject({ state: 'failed', error: { code: 'PAYLOAD_INVALID' } })
    expect(run?.error?.message).toMatch(/the result of job "big"\.count: a bigint is not JSON/)
  })

  it('parse their payload with the schema: the handler gets its output', async () => {
    const { belfry, advance } = createTestBelfry()
    const seen: Required<Order>[] = []
    const job = belfry.job('ship', { payload: order, run: ({ payload }) => void seen.push(payload) })
    await belfry.start()
    await job.enqueue({ id: 1, note: ' fragile ' })
    await job.enqueue({ id: 2 })
    await advance('1s')
    expect(seen).toEqual([
      { id: 1, note: 'fragile' },
      { id: 2, note: 'none' },
    ])
  })

  it('refuse an enqueue that fails the schema, naming each field, and enqueue nothing', async () => {
    const { belfry, runs } = createTestBelfry()
    const job = belfry.job('ship', { payload: order, run: () => null })
    await belfry.start()
    // @ts-expect-error the payload's type comes from the schema
    const refused = job.enqueue({ id: 'one', note: 5 })
    await expect(refused).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    await expect(refused).rejects.toThrow(
      'payload of job "ship" does not fit its schema: id: expected a number; note: expected text',
    )
    expect(await runs('ship')).toEqual([])
  })

  it('refuse a schedule whose payload fails the schema, and write nothing', async () => {
    const { belfry } = createTestBelfry()
    const job = belfry.job('ship', { payload: order, run: () => null })
    belfry.schedule('ship/good', { every: '1h', job, payload: { id: 1 } })
    belfry.schedule('ship/bad', { every: '1h', job, payload: { id: 'one' as unknown as number } })
    await expect(belfry.start()).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    expect((await belfry.schedules.list()).items).toEqual([])
  })

  it('fail at once, without retries, on a stored payload that the schema now refuses', async () => {
    const { belfry, store, advance, runs } = createTestBelfry()
    let calls = 0
    belfry.job('ship', {
      payload: order,
      run: () => {
        calls += 1
      },
    })
    await belfry.start()
    const old = {
      target: { job: 'ship' },
      origin: 'enqueue',
      payload: { number: 1 },
      priority: 0,
      keep: 'all',
    } as const
    await store.runs.enqueue([old])
    await advance('1h')
    expect(calls).toBe(0)
    expect((await runs('ship'))[0]).toMatchObject({ state: 'failed', attempt: 1, error: { code: 'PAYLOAD_INVALID' } })
  })

  it('run as many attempts at a time as their own concurrency and the instance’s allow', async () => {
    const { belfry, advance } = createTestBelfry({ concurrency: 5 })
    const now = { narrow: 0, wide: 0 }
    const most = { narrow: 0, wide: 0 }
    const count = (name: keyof typeof now) => () => {
      now[name] += 1
      most[name] = Math.max(most[name], now[name])
      return new Promise<void>((resolve) => {
        releases.push(() => {
          now[name] -= 1
          resolve()
        })
      })
    }
    const releases: (() => void)[] = []
    const narrow = belfry.job('narrow', { concurrency: 2, run: count('narrow') })
    const wide = belfry.job('wide', { run: count('wide') })
    await belfry.start()
    await narrow.enqueueMany(Array.from({ length: 10 }, (_, payload) => ({ payload })))
    await wide.enqueueMany(Array.from({ length: 25 }, (_, payload) => ({ payload })))
    await advance('1s')
    expect(now).toEqual({ narrow: 2, wide: 3 })
    for (let round = 0; round < 10; round += 1) {
      for (const release of releases.splice(0)) release()
      await advance('1s')
    }
    expect(most.narrow).toBe(2)
    expect(most.wide).toBe(5)
    expect(now).toEqual({ narrow: 0, wide: 0 })
  })

  it.each([
    ['all', ['succeeded', 'failed']],
    ['failures', ['failed']],
    ['none', []],
  ] as const)('keep %s of their history', async (keep, states) => {
    const { belfry, advance, runs } = createTestBelfry()
    const job = belfry.job('send', {
      keep,
      retry: { attempts: 1 },
      run: ({ payload }) => {
        if (payload === 'bad') throw new Error('bounced')
      },
    })
    belfry.schedule('send/daily', { every: '1h', job, payload: 'good', times: 1 })
    await belfry.start()
    const good = await job.enqueue('good')
    await job.enqueue('bad')
    await advance('1m')
    expect((await runs('send')).map(({ state }) => state)).toEqual(states)
    expect((await belfry.runs.wait(good.run)) === undefined).toBe(keep !== 'all')
    // A run of a tick uses the job's `keep`, unless its schedule sets its own.
    await belfry.schedules.put('send/kept', { every: '1h', job, payload: 'good', keep: 'all' })
    await advance('2h')
    expect(await runs('send/kept')).toHaveLength(2)
    const ticks = (await belfry.runs.list({ schedule: 'send/daily' })).items
    expect(ticks).toHaveLength(keep === 'all' ? 1 : 0)
  })

  it('have unique names: a second definition of a name is refused', () => {
    const { belfry } = createTestBelfry()
    belfry.job('send', { run: () => null })
    expect(() => belfry.job('send', { run: () => null })).toThrow(
      expect.objectContaining({ code: 'JOB_DUPLICATE', message: expect.stringMatching(/"send".*another name/) }),
    )
  })
})
