import { describe, expect, it, vi } from 'vitest'
import type { Delivery } from '../../src/core/sink.js'
import { createTestBelfry } from '../../src/testing/test-belfry.js'

/** Thrown values that are not plain errors. */
const strange: readonly [what: string, thrown: unknown][] = [
  ['nothing', undefined],
  ['a number', 7],
  ['an error whose message throws', withGetter('message')],
  ['an error whose code throws', withGetter('code')],
  ['an error whose retryable throws', withGetter('retryable')],
  ['an error whose stack is a number', Object.assign(new Error('odd'), { stack: 5 })],
  ['a circular object without a prototype', circular()],
  ['an object whose toString and toJSON throw', { toString: explode, toJSON: explode }],
  ['a proxy that refuses everything', new Proxy({}, { get: explode, ownKeys: explode, getPrototypeOf: explode })],
]

function explode(): never {
  throw new Error('no')
}

function withGetter(name: string): Error {
  return Object.defineProperty(new Error('odd'), name, { get: explode })
}

function circular(): object {
  const object = Object.create(null) as { self?: object }
  object.self = object
  return object
}

describe('a handler', () => {
  it.each(strange)('that throws %s fails its own run and nothing else', async (_, thrown) => {
    const { belfry, advance, runs } = createTestBelfry()
    const job = belfry.job('odd', {
      retry: { attempts: 1 },
      run: () => {
        throw thrown
      },
    })
    await belfry.start()
    await job.enqueue()
    await advance('1s')
    const [run] = await runs('odd')
    expect(run).toMatchObject({ state: 'failed', failures: 1 })
    expect(run?.error?.message).toEqual(expect.any(String))
    await belfry.stop()
  })
})

describe('a sink', () => {
  const answers: readonly [what: string, answer: unknown][] = [
    ['nothing', undefined],
    ['too few outcomes', []],
    ['something else', 'ok'],
    ['an absurd delay', [{ delivered: false, error: 'later', retryAfterMs: Number.NaN }]],
    ['an endless delay', [{ delivered: false, error: 'later', retryAfterMs: 1e18 }]],
  ]

  it.each(answers)('that returns %s is called again, and other sinks and runs continue', async (_, answer) => {
    let odd = true
    const sink = { deliver: async () => (odd ? answer : [{ delivered: true }]) as readonly Delivery[] }
    const { belfry, advance, runs } = createTestBelfry({ sinks: { orders: sink } })
    await belfry.start()
    await belfry.schedules.put('tick', { at: '2026-01-01T00:00:01Z', to: 'orders' })
    await advance('4s')
    expect((await runs('tick')).map(({ state }) => state)).toEqual(['ready'])
    odd = false
    await advance('25h')
    expect((await runs('tick')).map(({ state }) => state)).toEqual(['succeeded'])
    await belfry.stop()
  })
})

describe('a logger that throws', () => {
  it('does not disturb the instance', async () => {
    const logger = { debug: explode, info: explode, warn: explode, error: explode, child: explode }
    const { belfry, advance, runs } = createTestBelfry({ logger })
    const job = belfry.job('mail', { run: ({ log }) => log.info({}, 'sending') })
    belfry.on('run:started', explode)
    await belfry.start()
    await job.enqueue()
    await advance('1s')
    expect((await runs('mail')).map(({ state }) => state)).toEqual(['succeeded'])
    await belfry.stop()
  })
})

describe('a stored payload from which the job’s code cannot compute a key', () => {
  it('fails its run with the reason, and housekeeping of other runs continues', async () => {
    const { belfry, instance, advance, runs } = createTestBelfry()
    const operator = instance({ roles: [] })
    await operator.start()
    await operator.schedules.put('poison', { at: '2026-01-01T00:00:01Z', job: 'ship', payload: { region: 5 } })
    const region = {
      '~standard': {
        validate: (value: unknown) =>
          typeof (value as { region?: unknown })?.region === 'string'
            ? { value: value as { region: string } }
            : { issues: [{ message: 'expected text', path: ['region'] }] },
      },
    }
    belfry.job('ship', { payload: region, exclusive: () => explode(), run: () => {} })
    await belfry.start()
    await advance('30m')
    const [run] = await runs('poison')
    expect(run).toMatchObject({ state: 'failed', error: { code: 'PAYLOAD_INVALID' } })
  })
})

describe('a lock', () => {
  it('refuses a heartbeat of 0 and an extension by 0', async () => {
    const { belfry } = createTestBelfry()
    await expect(belfry.lock('a', { heartbeat: 0 })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    const lock = await belfry.lock('a')
    await expect(lock?.extend(0)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(lock?.signal.aborted).toBe(false)
    await belfry.stop()
  })

  it('that is held when the instance stops is released, and its signal fires first', async () => {
    const { belfry, instance } = createTestBelfry()
    const other = instance()
    const lock = await belfry.lock('invoice')
    await belfry.stop()
    expect(lock?.signal.aborted).toBe(true)
    expect(lock?.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
    expect(await other.lock('invoice')).toBeDefined()
    await other.stop()
  })
})

describe('stopping', () => {
  it('rejects the calls that wait for a run', async () => {
    const { belfry } = createTestBelfry()
    const job = belfry.job('mail', { run: () => {} })
    await belfry.start()
    const { run } = await job.enqueue(null, { in: '1d' })
    const waiting = expect(belfry.runs.wait(run)).rejects.toMatchObject({ code: 'NOT_RUNNING' })
    await belfry.stop()
    await waiting
  })

  it('during start() prevents all work', async () => {
    const { belfry, clock } = createTestBelfry()
    const run = vi.fn()
    belfry.job('mail', { run })
    belfry.schedule('tick', { every: '1s', job: 'mail' })
    const starting = expect(belfry.start()).rejects.toMatchObject({ code: 'NOT_RUNNING' })
    await belfry.stop()
    await starting
    await clock.advance(10_000)
    expect(run).not.toHaveBeenCalled()
  })

  it('can be called again with a shorter grace', async () => {
    const { belfry, clock } = createTestBelfry({ stopGrace: '1h' })
    const job = belfry.job('slow', {
      run: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    })
    await belfry.start()
    await job.enqueue()
    await clock.advance(100)
    let stopped = false
    void belfry.stop().then(() => {
      stopped = true
    })
    await clock.advance(60_000)
    expect(stopped).toBe(false)
    void belfry.stop({ grace: 0 })
    await clock.advance(2_000)
    expect(stopped).toBe(true)
  })
})

describe('a trigger and a backfill', () => {
  it('refuse what an enqueue would refuse', async () => {
    const { belfry, runs } = createTestBelfry()
    const text = {
      '~standard': {
        validate: (value: unknown) =>
          typeof value === 'string' ? { value } : { issues: [{ message: 'expected text' }] },
      },
    }
    belfry.job('mail', { payload: text, run: () => {} })
    belfry.schedule('s', { every: '1h', job: 'mail', payload: 'hello' })
    await belfry.start()
    await expect(belfry.schedules.trigger('s', { payload: 5 })).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    await expect(belfry.schedules.trigger('s', { overlap: 'bogus' as 'allow' })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    await expect(belfry.schedules.backfill('s', undefined as never)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await runs('s')).toEqual([])
    await belfry.stop()
  })
})

describe('the test kit', () => {
  it('never prunes, however much time passes', async () => {
    const { belfry, advance, runs } = createTestBelfry()
    belfry.job('digest', { run: () => {} })
    belfry.schedule('digest/eu', { cron: '0 9 * * *', job: 'digest' })
    await belfry.start()
    await advance('30d')
    expect(await runs('digest/eu')).toHaveLength(30)
    await belfry.stop()
  })

  it('does not wait for a killed instance', async () => {
    const { belfry, crash } = createTestBelfry()
    await belfry.start()
    crash()
    await belfry.stop()
  })
})
