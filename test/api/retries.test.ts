import { describe, expect, it } from 'vitest'
import { NonRetryableError, type RetryOptions } from '../../src/index.js'
import { createTestBelfry } from '../../src/testing/index.js'

/** Runs a job whose attempts all fail, and returns the delays between them. */
async function delaysOf(retry: RetryOptions | undefined, error: (attempt: number) => unknown = () => new Error('no')) {
  const { belfry, clock, advance, runs } = createTestBelfry()
  const starts: number[] = []
  const job = belfry.job('flaky', {
    ...(retry === undefined ? {} : { retry }),
    run: ({ run }) => {
      starts.push(clock.now())
      throw error(run.attempt)
    },
  })
  await belfry.start()
  await job.enqueue(null)
  await advance('6d')
  const [run] = await runs('flaky')
  return { run, attempts: starts.length, delays: starts.slice(1).map((at, index) => at - (starts[index] ?? 0)) }
}

function near(expected: readonly number[]) {
  return (delays: readonly number[]) =>
    delays.length === expected.length &&
    delays.every((delay, at) => delay >= (expected[at] ?? 0) * 0.9 && delay <= (expected[at] ?? 0) * 1.1)
}

describe('retries', () => {
  it('are two by default, after about 1 s and 2 s; then the run fails with its last error', async () => {
    const { run, delays } = await delaysOf(undefined, (attempt) =>
      Object.assign(new Error(`no ${attempt}`), { code: 'E_NO' }),
    )
    expect(delays).toSatisfy(near([1_000, 2_000]))
    expect(run).toMatchObject({
      state: 'failed',
      attempt: 3,
      failures: 3,
      error: { message: 'no 3', code: 'E_NO' },
    })
    expect(run?.error?.stack).toContain('retries.test.ts')
  })

  it('double their delay from the first up to the longest under exponential backoff', async () => {
    const { delays } = await delaysOf({ attempts: 6, delay: '10s', maxDelay: '1m' })
    expect(delays).toSatisfy(near([10_000, 20_000, 40_000, 60_000, 60_000]))
  })

  it('have the same delay each time under fixed backoff', async () => {
    const { delays } = await delaysOf({ attempts: 4, backoff: 'fixed', delay: '5m' })
    expect(delays).toSatisfy(near([300_000, 300_000, 300_000]))
  })

  it('have the delay that a function of the failures and the error returns', async () => {
    const asked: unknown[] = []
    const backoff = (failures: number, error: unknown) => {
      asked.push([failures, (error as Error).message])
      return `${failures * 3}m`
    }
    const { delays } = await delaysOf({ attempts: 3, backoff }, (attempt) => new Error(`no ${attempt}`))
    expect(delays).toSatisfy(near([180_000, 360_000]))
    expect(asked).toEqual([
      [1, 'no 1'],
      [2, 'no 2'],
    ])
  })

  it('never wait longer than a day', async () => {
    const { delays } = await delaysOf({ attempts: 2, backoff: () => '20d' })
    expect(delays).toSatisfy(near([24 * 3_600_000]))
  })

  it('end with the job’s own error when the backoff function throws or returns an invalid delay', async () => {
    const thrower = () => {
      throw new Error('no idea')
    }
    for (const backoff of [thrower, () => 'soon', () => Number.NaN, () => -1]) {
      const { run, attempts } = await delaysOf({ attempts: 5, backoff })
      expect(attempts).toBe(1)
      expect(run).toMatchObject({ state: 'failed', error: { message: 'no' } })
    }
  })

  it('are spread by run, so that runs that failed together are not retried together', async () => {
    const { belfry, advance, clock } = createTestBelfry({ concurrency: 100 })
    const retriedAt = new Set<number>()
    const job = belfry.job('flaky', {
      retry: { attempts: 2, backoff: 'fixed', delay: '10m' },
      run: ({ run }) => {
        if (run.attempt === 2) retriedAt.add(clock.now())
        else throw new Error('down')
      },
    })
    await belfry.start()
    await job.enqueueMany(Array.from({ length: 50 }, (_, payload) => ({ payload })))
    await advance('1h')
    expect(retriedAt.size).toBeGreaterThan(40)
  })

  it.each([
    ['a NonRetryableError', () => new NonRetryableError('gone')],
    ['any error with retryable: false', () => Object.assign(new Error('gone'), { retryable: false })],
  ])('are not made after %s', async (_, error) => {
    const { run, attempts } = await delaysOf({ attempts: 10 }, error)
    expect(attempts).toBe(1)
    expect(run).toMatchObject({ state: 'failed', attempt: 1, error: { message: 'gone' } })
  })

  it('can be turned off', async () => {
    expect((await delaysOf({ attempts: 1 })).attempts).toBe(1)
  })

  it('store the thrown value, whether or not it is an error', async () => {
    const { run } = await delaysOf({ attempts: 1 }, () => ({ status: 503 }))
    expect(run?.error).toEqual({ message: '{"status":503}' })
    const long = await delaysOf({ attempts: 1 }, () => new Error('x'.repeat(100_000)))
    expect(long.run?.error?.message).toHaveLength(2_000)
  })

  it('emit an event with the delay; the last failure emits `failed`', async () => {
    const { belfry, advance } = createTestBelfry()
    const told: unknown[] = []
    belfry.on('run:retrying', ({ delayMs, error }) => told.push(['retrying', delayMs > 0, error.message]))
    belfry.on('run:failed', ({ error }) => told.push(['failed', error.message]))
    const job = belfry.job('flaky', {
      retry: { attempts: 2 },
      run: () => {
        throw new Error('no')
      },
    })
    await belfry.start()
    await job.enqueue(null)
    await advance('1m')
    expect(told).toEqual([
      ['retrying', true, 'no'],
      ['failed', 'no'],
    ])
  })

  it('by hand give a failed run its full number of attempts again', async () => {
    const { belfry, advance, runs } = createTestBelfry()
    let broken = true
    const job = belfry.job('flaky', {
      retry: { attempts: 2 },
      run: () => {
        if (broken) throw new Error('no')
        return 'yes'
      },
    })
    await belfry.start()
    const { run } = await job.enqueue(null)
    await advance('1m')
    expect(await belfry.runs.get(run)).toMatchObject({ state: 'failed' })
    broken = false
    await belfry.runs.retry(run)
    await advance('1m')
    expect(await runs('flaky')).toMatchObject([{ id: run, state: 'succeeded', result: 'yes' }])
    await expect(belfry.runs.retry(run)).rejects.toMatchObject({ code: 'TRANSITION_REFUSED' })
    await expect(belfry.runs.retry('nobody')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' })
  })
})
