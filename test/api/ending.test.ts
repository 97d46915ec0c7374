/** Timeouts, cancels and stops ask an attempt to end. One that ignores the request is fenced. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/core/clock.js'
import {
  type Clock,
  createBelfry,
  type HandlerContext,
  type Logger,
  type Store,
  silentLogger,
} from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { createTestBelfry } from '../../src/testing/index.js'

function recorder() {
  const lines: { readonly level: string; readonly message: string; readonly fields: object }[] = []
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, message, fields })
  const logger: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { logger, warnings: () => lines.filter(({ level }) => level === 'warn') }
}

function endsOnSignal({ signal }: HandlerContext<unknown>): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
}

function ignoresSignal(): Promise<never> {
  return new Promise(() => {})
}

describe('a timeout', () => {
  it('fires the signal with the reason; an attempt that then ends has failed and is retried', async () => {
    const { logger, warnings } = recorder()
    const { belfry, advance, runs } = createTestBelfry({ logger })
    const reasons: unknown[] = []
    const job = belfry.job('slow', {
      timeout: '10m',
      retry: { attempts: 2, backoff: 'fixed', delay: '1m' },
      run: (context) => {
        context.signal.addEventListener('abort', () => reasons.push(context.signal.reason))
        return endsOnSignal(context)
      },
    })
    await belfry.start()
    await job.enqueue(null)
    await advance('9m59s')
    expect(reasons).toEqual([])
    await advance('2s')
    expect(reasons).toMatchObject([{ code: 'TIMEOUT' }])
    expect(await runs('slow')).toMatchObject([{ state: 'ready', failures: 1, error: { code: 'TIMEOUT' } }])
    await advance('20m')
    expect(await runs('slow')).toMatchObject([{ state: 'failed', attempt: 2, error: { code: 'TIMEOUT' } }])
    expect(warnings()).toEqual([])
  })

  it('accepts the result of a handler that returns within 5 s', async () => {
    const { belfry, advance, runs, clock } = createTestBelfry()
    const job = belfry.job('slow', {
      timeout: '1m',
      run: () => new Promise((resolve) => clock.after(64_000, () => resolve('just'))),
    })
    await belfry.start()
    await job.enqueue(null)
    await advance('2m')
    expect(await runs('slow')).toMatchObject([{ state: 'succeeded', result: 'just', attempt: 1 }])
  })

  it('fences a handler that ignores the signal for 5 s: one warning names it, its key is freed, and the next run starts', async () => {
    const { logger, warnings } = recorder()
    const { belfry, advance, runs, clock, store } = createTestBelfry({ logger })
    const starts: number[] = []
    const job = belfry.job('deaf', {
      exclusive: { whenBusy: 'wait' },
      timeout: '1m',
      retry: { attempts: 1 },
      run: ({ payload }) => {
        starts.push(clock.now())
        return payload === 1 ? ignoresSignal() : 'done'
      },
    })
    // Both runs have the same key.
    const first = await job.enqueue(1)
    await belfry.start()
    await advance('1s')
    const startedAt = starts[0] ?? 0
    const key = (await runs('deaf'))[0]?.key?.name ?? ''
    expect(await store.leases.inspect(key)).toHaveLength(1)
    await advance('1m3s')
    expect(await belfry.runs.get(first.run)).toMatchObject({ state: 'running' })
    await advance('5s')
    expect(await belfry.runs.get(first.run)).toMatchObject({ state: 'failed', error: { code: 'TIMEOUT' } })
    expect(await store.leases.inspect(key)).toEqual([])
    expect(warnings()).toHaveLength(1)
    expect(warnings()[0]).toMatchObject({
      message: expect.stringMatching(/did not return after it was aborted.*fenced/),
      fields: { job: 'deaf', run: first.run, reason: 'timeout' },
    })
    expect(starts).toEqual([startedAt])
  })

  it('frees the slot and the key of a fenced handler, so that the next run of the key begins', async () => {
    const { belfry, advance, clock } = createTestBelfry({ concurrency: 1 })
    const starts = new Map<unknown, number>()
    const job = belfry.job('deaf', {
      exclusive: { by: ['key'], whenBusy: 'wait' },
      timeout: '1m',
      retry: { attempts: 1 },
      run: ({ payload }) => {
        const { at } = payload as { at: number }
        starts.set(at, clock.now())
        return at === 0 ? ignoresSignal() : 'done'
      },
    })
    await job.enqueue({ key: 'a', at: 0 })
    await job.enqueue({ key: 'a', at: 1 })
    await belfry.start()
    await advance('5m')
    expect((starts.get(1) ?? 0) - (starts.get(0) ?? 0)).toBe(65_000)
  })

  it('discards the result of a fenced handler', async () => {
    const { belfry, advance, runs, clock } = createTestBelfry()
    let attempts = 0
    const job = belfry.job('late', {
      timeout: '1m',
      retry: { attempts: 2, backoff: 'fixed', delay: '1s' },
      run: () => {
        attempts += 1
        const mine = attempts
        return new Promise((resolve) => clock.after(mine === 1 ? 120_000 : 58_000, () => resolve(mine)))
      },
    })
    await belfry.start()
    await job.enqueue(null)
    await advance('10m')
    expect(await runs('late')).toMatchObject([{ state: 'succeeded', result: 2, attempt: 2 }])
  })
})

describe('a cancel', () => {
  it('permanently ends a run that has not started', async () => {
    const { belfry, advance } = createTestBelfry()
    let ran = false
    const job = belfry.job('mail', {
      run: () => {
        ran = true
      },
    })
    await belfry.start()
    const { run } = await job.enqueue(null, { in: '1h' })
    expect(await belfry.runs.cancel(run)).toBe('cancelled')
    expect(await belfry.runs.cancel(run)).toBe('finished')
    await advance('2h')
    expect(ran).toBe(false)
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'cancelled', attempt: 0 })
    await expect(belfry.runs.cancel('nobody')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
  })

  it('asks a running attempt on any instance to end, and does not retry it', async () => {
    const { belfry, instance, advance } = createTestBelfry()
    const reasons: unknown[] = []
    const told: string[] = []
    const worker = instance()
    worker.job('slow', {
      retry: { attempts: 5 },
      run: (context) => {
        context.signal.addEventListener('abort', () => reasons.push(context.signal.reason))
        return endsOnSignal(context)
      },
    })
    worker.on('run:cancelled', ({ run }) => told.push(run.id))
    const web = instance({ roles: [] })
    const job = web.job('slow', { run: () => null })
    await worker.start()
    await web.start()
    const { run } = await job.enqueue(null)
    await advance('1s')
    expect(await web.runs.cancel(run)).toBe('requested')
    await advance('1s')
    expect(reasons).toMatchObject([{ code: 'CANCELLED' }])
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'cancelled', attempt: 1 })
    expect(told).toEqual([run])
  })

  it('fences a running attempt that ignores it for 5 s', async () => {
    const { logger, warnings } = recorder()
    const { belfry, advance } = createTestBelfry({ logger })
    const job = belfry.job('deaf', { run: ignoresSignal })
    await belfry.start()
    const { run } = await job.enqueue(null)
    await advance('1s')
    await belfry.runs.cancel(run)
    await advance('4s')
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'running', cancelRequested: true })
    await advance('2s')
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'cancelled' })
    expect(warnings()).toMatchObject([{ fields: { job: 'deaf', reason: 'cancel' } }])
  })

  it('ends a run that waits for its next attempt', async () => {
    const { belfry, advance } = createTestBelfry()
    const job = belfry.job('flaky', {
      retry: { attempts: 5, backoff: 'fixed', delay: '1h' },
      run: () => {
        throw new Error('no')
      },
    })
    await belfry.start()
    const { run } = await job.enqueue(null)
    await advance('1m')
    expect(await belfry.runs.cancel(run)).toBe('cancelled')
    await advance('1d')
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'cancelled', attempt: 1 })
  })
})

describe('stop', () => {
  it('claims no more runs and lets running ones end within the grace', async () => {
    const { belfry, advance, clock, runs, store } = createTestBelfry({ concurrency: 1 })
    const job = belfry.job('slow', {
      run: () => new Promise((resolve) => clock.after(8_000, () => resolve('done'))),
    })
    await belfry.start()
    await job.enqueue(1)
    await job.enqueue(2)
    await advance('1s')
    const stopped = belfry.stop({ grace: '10s' })
    await advance('8s')
    await stopped
    expect((await runs('slow')).map(({ state }) => state)).toEqual(['succeeded', 'ready'])
    expect(await store.instances.list()).toEqual([])
  })

  it('aborts the remaining attempts and hands them over at once, without charging a failed attempt', async () => {
    const { belfry, instance, advance, runs, clock } = createTestBelfry()
    const released: string[] = []
    const reasons: unknown[] = []
    const job = belfry.job('slow', {
      exclusive: true,
      retry: { attempts: 1 },
      run: (context) => {
        context.signal.addEventListener('abort', () => reasons.push(context.signal.reason))
        return endsOnSignal(context)
      },
    })
    belfry.on('run:released', ({ run }) => released.push(run.id))
    const other = instance()
    const startedAt: number[] = []
    other.job('slow', {
      exclusive: true,
      run: () => {
        startedAt.push(clock.now())
        return 'taken over'
      },
    })
    await belfry.start()
    const { run } = await job.enqueue(null)
    await advance('1s')
    await other.start()
    const stoppedAt = clock.now()
    const stopped = belfry.stop({ grace: '5s' })
    await advance('1m')
    await stopped
    expect(reasons).toMatchObject([{ code: 'STOPPING' }])
    expect(released).toEqual([run])
    expect(await runs('slow')).toMatchObject([
      { state: 'succeeded', result: 'taken over', attempt: 2, failures: 0, takeovers: 0 },
    ])
    expect((startedAt[0] ?? 0) - stoppedAt).toBe(5_000)
  })

  it('fences a handler that ignores the signal for 1 s, and hands its run over', async () => {
    const { logger, warnings } = recorder()
    const { belfry, instance, advance, runs, clock } = createTestBelfry({ logger })
    const job = belfry.job('deaf', { run: ignoresSignal })
    const other = instance()
    const startedAt: number[] = []
    other.job('deaf', { run: () => void startedAt.push(clock.now()) })
    await belfry.start()
    await job.enqueue(null)
    await advance('1s')
    await other.start()
    const stoppedAt = clock.now()
    const stopped = belfry.stop({ grace: 0 })
    await advance('10s')
    await stopped
    expect(warnings()).toMatchObject([{ fields: { job: 'deaf', reason: 'stop' } }])
    expect((startedAt[0] ?? 0) - stoppedAt).toBe(1_000)
    expect(await runs('deaf')).toMatchObject([{ state: 'succeeded', failures: 0, takeovers: 0 }])
  })

  it.each([0, 1, 5, 20])('leaves no timer behind when it comes %i ms after the start', async (ms) => {
    let timers = 0
    const clock: Clock = {
      ...systemClock,
      after(delayMs, callback) {
        timers += 1
        let over = false
        const end = () => {
          if (!over) timers -= 1
          over = true
        }
        const cancel = systemClock.after(delayMs, () => {
          end()
          callback()
        })
        return () => {
          end()
          cancel()
        }
      },
    }
    // `join` takes 10 ms, as on a real store, so that stop() can arrive while start() still waits for it.
    const store = memory({ clock })
    const { join } = store.instances
    const slow: Store = {
      ...store,
      instances: {
        ...store.instances,
        join: async (...args) => {
          await sleep(10)
          return join(...args)
        },
      },
    }
    const belfry = createBelfry({ store: slow, clock, logger: silentLogger })
    await belfry.start()
    if (ms > 0) await sleep(ms)
    await belfry.stop({ grace: 0 })
    await sleep(30)
    expect(timers).toBe(0)
  })

  it('takes effect once, however often it is called, and is final', async () => {
    const { belfry } = createTestBelfry()
    await belfry.start()
    await Promise.all([belfry.stop(), belfry.stop()])
    await belfry.stop()
    await expect(belfry.start()).rejects.toMatchObject({ code: 'NOT_RUNNING' })
    expect(() => belfry.job('late', { run: () => null })).toThrow(expect.objectContaining({ code: 'NOT_RUNNING' }))
  })

  it('is called at the end of `await using`', async () => {
    const { instance, store } = createTestBelfry()
    {
      await using belfry = instance()
      await belfry.start()
      await belfry.lock('x')
    }
    expect(await store.leases.inspect('x')).toEqual([])
    expect(await store.instances.list()).toEqual([])
  })
})
