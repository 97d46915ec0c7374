/**
 * Runs one attempt of a job: parses its payload, calls the handler, and turns what happened into an outcome.
 *
 * An aborted attempt has its window to return; after it the attempt is fenced and settled without it. Whatever the
 * handler does then can no longer be committed through Belfry, but it may overlap its successor: one warning names it.
 */
import { errorRecord, failure } from '../core/errors.js'
import { messageOf } from '../core/event.js'
import { type Json, toJson } from '../core/json.js'
import type { Logger } from '../core/logger.js'
import { decideRetry } from '../core/retry.js'
import type { Outcome } from '../core/run.js'
import type { ClaimedRun } from '../core/store.js'
import { type Attempt, abortError, FENCED } from './attempt.js'
import type { HandlerContext, JobDefinition } from './work.js'

/** How long a handler has to return after a timeout or a cancel, before it is fenced. */
export const ABORT_WINDOW_MS = 5_000
/** The same when the instance stops. */
export const STOP_WINDOW_MS = 1_000

/** Runs the attempt to its end. Undefined when it was lost: then there is nothing of ours left to settle. */
export async function runAttempt(attempt: Attempt, job: JobDefinition, log: Logger): Promise<Outcome | undefined> {
  attempt.abortAfter(job.timeoutMs, ABORT_WINDOW_MS)
  try {
    const value = await attempt.outcome(callHandler(attempt, job, log))
    if (value === FENCED) return fencedOutcome(attempt, job, log)
    if (attempt.reason === 'lost') return undefined
    return { kind: 'succeeded', result: resultOf(job, value) }
  } catch (error) {
    return failedOutcome(attempt, job, error)
  } finally {
    attempt.end()
  }
}

/** The work is done: a result that cannot be stored is no reason to do it again. */
function resultOf(job: JobDefinition, value: unknown): Json {
  try {
    return toJson(value, `the result of job "${job.name}"`)
  } catch (error) {
    throw Object.assign(error as Error, { retryable: false })
  }
}

async function callHandler(attempt: Attempt, job: JobDefinition, log: Logger): Promise<unknown> {
  const payload = await job.parse(attempt.run.payload)
  return job.run(handlerContext(attempt, payload, log))
}

function handlerContext(attempt: Attempt, payload: unknown, log: Logger): HandlerContext<unknown> {
  const { run } = attempt
  return {
    payload,
    run,
    token: run.token,
    get signal() {
      return attempt.signal
    },
    get tick() {
      return new Date(run.tick ?? run.createdAt)
    },
    get event() {
      return messageOf(run)
    },
    get log() {
      return log.child?.({ run: run.id, attempt: run.attempt }) ?? log
    },
    transaction: async () => {
      throw failure('UNSUPPORTED', 'this store has no transactions: use Postgres or SQLite for transaction()')
    },
  }
}

function fencedOutcome(attempt: Attempt, job: JobDefinition, log: Logger): Outcome | undefined {
  const { run, reason } = attempt
  log.warn(
    { job: job.name, run: run.id, attempt: run.attempt, reason },
    'a handler did not return after it was aborted: it is fenced, and may overlap its successor; let it watch its signal',
  )
  return abortedOutcome(attempt, job)
}

function failedOutcome(attempt: Attempt, job: JobDefinition, error: unknown): Outcome | undefined {
  return attempt.reason === undefined ? failed(job, attempt.run, error) : abortedOutcome(attempt, job)
}

/** An aborted attempt ends by the reason it was aborted for, whatever its handler then threw. */
function abortedOutcome({ reason, run }: Attempt, job: JobDefinition): Outcome | undefined {
  if (reason === 'lost' || reason === undefined) return undefined
  if (reason === 'stop') return { kind: 'released' }
  if (reason === 'cancel') return { kind: 'cancelled' }
  return failed(job, run, abortError('timeout', run))
}

function failed(job: JobDefinition, run: ClaimedRun, error: unknown): Outcome {
  const record = errorRecord(error)
  const decision = decideRetry(job.retry, run.id, run.failures + 1, error)
  return decision.retry
    ? { kind: 'retry', error: record, delayMs: decision.delayMs }
    : { kind: 'failed', error: record }
}
