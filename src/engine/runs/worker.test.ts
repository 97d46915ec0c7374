import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../core/logger.js'
import type { ClaimedRun, RunStore } from '../../core/store.js'
import { manualClock } from '../../testing/manual-clock.js'
import type { HandlerContext } from '../definitions.js'
import { Attempt } from './attempt.js'
import { runAttempt } from './worker.js'

const RUN: ClaimedRun = {
  ...{ id: '1', target: { job: 'j' }, origin: 'enqueue', payload: null, priority: 0, keep: 'all', state: 'running' },
  ...{ createdAt: 0, readyAt: 0, attempt: 1, failures: 0, takeovers: 0, token: 1, startedAt: 0 },
}

const JOB = {
  name: 'j',
  retry: { attempts: 1, delayMs: () => 0 },
  timeoutMs: 1_000,
  keep: 'all',
  concurrency: 1,
} as const

type Transact = NonNullable<RunStore['transact']>

function contextOf(transact: Transact) {
  const threads = { run: () => Promise.reject(new Error('no threads')), end: async () => true }
  return { store: { runs: { transact } }, log: silentLogger, threads }
}

/** One attempt of a job with this handler, on a store that commits every transaction at the end of its work. */
function attemptOf(run: (context: HandlerContext<unknown>) => unknown) {
  const transact: Transact = async (_, work) => ({ result: ((await work(undefined)) ?? null) as string })
  return runAttempt(new Attempt(RUN, manualClock()), { ...JOB, run }, contextOf(transact))
}

describe('a pending transaction', () => {
  const lost = { code: 'LEASE_LOST' }

  /** An attempt whose transaction the store never answers, and the error that its handler gets. */
  function pendingAttempt() {
    const attempt = new Attempt(RUN, manualClock())
    const signals: AbortSignal[] = []
    const transact: Transact = (_, __, signal) => {
      if (signal !== undefined) signals.push(signal)
      return new Promise(() => {})
    }
    const told: unknown[] = []
    const run = ({ transaction }: HandlerContext<unknown>) =>
      transaction(() => 'committed').catch((error: unknown) => {
        told.push(error)
        throw error
      })
    const outcome = runAttempt(attempt, { ...JOB, run }, contextOf(transact))
    return { attempt, outcome, told, signals }
  }

  it('rejects as soon as the lease is lost, and the store rolls back', async () => {
    const { attempt, outcome, told, signals } = pendingAttempt()
    attempt.abort('lost', 5_000)
    expect(await outcome).toBeUndefined()
    expect(told).toMatchObject([lost])
    expect(signals.map(({ reason }) => reason)).toMatchObject([lost])
  })

  it('rejects when the lease is lost during the abort window of a cancelled attempt', async () => {
    const { attempt, outcome, told, signals } = pendingAttempt()
    attempt.abort('cancel', 5_000)
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
    attempt.abort('lost', 5_000)
    expect(await outcome).toBeUndefined()
    expect(told).toMatchObject([lost])
  })

  it('does not begin after the lease is lost', async () => {
    const attempt = new Attempt(RUN, manualClock())
    let begun = 0
    const transact: Transact = async () => {
      begun += 1
      return { result: null }
    }
    const run = async ({ transaction }: HandlerContext<unknown>) => {
      attempt.abort('lost', 5_000)
      await transaction(() => 'late')
    }
    expect(await runAttempt(attempt, { ...JOB, run }, contextOf(transact))).toBeUndefined()
    expect(begun).toBe(0)
  })
})

describe('an attempt', () => {
  it('ends when its handler returns', async () => {
    expect(await attemptOf(() => 'done')).toEqual({ kind: 'succeeded', result: 'done' })
  })

  it('awaits any thenable', async () => {
    const then = (resolve: (value: string) => void) => resolve('done')
    for (const value of [Promise.resolve('done'), { then }, Object.assign(() => {}, { then })]) {
      expect(await attemptOf(() => value)).toEqual({ kind: 'succeeded', result: 'done' })
    }
  })

  it('waits for a transaction that its handler did not await', async () => {
    const outcome = attemptOf(({ transaction }) => {
      void transaction(async () => 'committed')
      return 'returned'
    })
    expect(await outcome).toEqual({ kind: 'succeeded', result: 'committed' })
  })

  it('fails with the error of its handler, whether it throws or rejects', async () => {
    const fail = () => {
      throw new Error('no')
    }
    for (const run of [fail, async () => fail(), () => fail]) {
      expect(await attemptOf(run)).toMatchObject({ kind: 'failed' })
    }
  })
})
