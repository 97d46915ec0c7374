import { describe, expect, it } from 'vitest'
import { silentLogger } from '../core/logger.js'
import type { ClaimedRun, RunStore } from '../core/store.js'
import { manualClock } from '../testing/manual-clock.js'
import { Attempt } from './attempt.js'
import type { HandlerContext } from './work.js'
import { runAttempt } from './worker.js'

const RUN: ClaimedRun = {
  ...{ id: '1', target: { job: 'j' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all', state: 'running' },
  ...{ createdAt: 0, readyAt: 0, attempt: 1, failures: 0, takeovers: 0, token: 1, startedAt: 0 },
}

/** One attempt of a job with this handler, and a store that commits every transaction when its work is done. */
function attemptOf(run: (context: HandlerContext<unknown>) => unknown) {
  const transact: RunStore['transact'] = async (_, work) => ({ result: ((await work(undefined)) ?? null) as string })
  const job = {
    name: 'j',
    run,
    retry: { attempts: 1, delayMs: () => 0 },
    timeoutMs: 1_000,
    keep: 'all',
    concurrency: 1,
  } as const
  const threads = { run: () => Promise.reject(new Error('no threads')), end: async () => true }
  return runAttempt(new Attempt(RUN, manualClock()), job, { store: { runs: { transact } }, log: silentLogger, threads })
}

describe('an attempt', () => {
  it('is over at once when its handler returns at once', () => {
    expect(attemptOf(() => 'done')).toEqual({ kind: 'succeeded', result: 'done' })
  })

  it('waits for whatever can be waited for', async () => {
    const then = (resolve: (value: string) => void) => resolve('done')
    for (const value of [Promise.resolve('done'), { then }, Object.assign(() => {}, { then })]) {
      expect(await attemptOf(() => value)).toEqual({ kind: 'succeeded', result: 'done' })
    }
  })

  it('waits for a transaction that its handler did not wait for', async () => {
    const outcome = attemptOf(({ transaction }) => {
      void transaction(async () => 'committed')
      return 'returned'
    })
    expect(await outcome).toEqual({ kind: 'succeeded', result: 'committed' })
  })

  it('fails with what its handler throws, at once or later', async () => {
    const fail = () => {
      throw new Error('no')
    }
    for (const run of [fail, async () => fail(), () => fail]) {
      expect(await attemptOf(run)).toMatchObject({ kind: 'failed' })
    }
  })
})
