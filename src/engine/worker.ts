/**
 * Runs one attempt of a job: parses its payload, calls the handler, and turns what happened into an outcome.
 *
 * An aborted attempt has its window to return; after it the attempt is fenced and settled without it. Whatever the
 * handler does then can no longer be committed through Belfry, but it may overlap its successor: one warning names it.
 */
import { errorRecord } from '../core/errors.js'
import { type Json, toJson } from '../core/json.js'
import type { Logger } from '../core/logger.js'
import { decideRetry } from '../core/retry.js'
import type { Outcome } from '../core/run.js'
import type { ClaimedRun, RunStore } from '../core/store.js'
import { type Attempt, abortError, FENCED } from './attempt.js'
import { CallContext } from './handler-context.js'
import { HandlerTransaction } from './handler-transaction.js'
import type { JobDefinition } from './work.js'

/** How long a handler has to return after a timeout or a cancel, before it is fenced. */
export const ABORT_WINDOW_MS = 5_000
/** The same when the instance stops. */
export const STOP_WINDOW_MS = 1_000

/** Runs the attempt to its end. Undefined when it was lost: then there is nothing of ours left to settle. */
export async function runAttempt(
  attempt: Attempt,
  job: JobDefinition,
  store: Pick<RunStore, 'transact'>,
  log: Logger,
): Promise<Outcome | undefined> {
  const transaction = new HandlerTransaction(store, attempt.run)
  attempt.abortAfter(job.timeoutMs, ABORT_WINDOW_MS)
  try {
    const value = await attempt.outcome(callHandler(attempt, job, transaction, log))
    if (value === FENCED) {
      transaction.abandon(abortError(attempt.reason ?? 'lost', attempt.run))
      return committedOutcome(attempt, transaction) ?? fencedOutcome(attempt, job, log)
    }
    if (attempt.reason === 'lost') return undefined
    return committedOutcome(attempt, transaction) ?? { kind: 'succeeded', result: resultOf(job, value) }
  } catch (error) {
    if (transaction.committed === undefined) return failedOutcome(attempt, job, error)
    log.warn(
      { job: job.name, run: attempt.run.id, attempt: attempt.run.attempt, err: errorRecord(error) },
      'a handler failed after its transaction had committed: the run has succeeded, and nothing is undone',
    )
    return committedOutcome(attempt, transaction)
  } finally {
    attempt.end()
  }
}

/** What was committed stands, however the attempt ended. */
function committedOutcome({ reason }: Attempt, { committed }: HandlerTransaction): Outcome | undefined {
  return committed === undefined || reason === 'lost' ? undefined : { kind: 'succeeded', result: committed.result }
}

/** The work is done: a result that cannot be stored is no reason to do it again. */
function resultOf(job: JobDefinition, value: unknown): Json {
  try {
    return toJson(value, `the result of job "${job.name}"`)
  } catch (error) {
    throw Object.assign(error as Error, { retryable: false })
  }
}

async function callHandler(
  attempt: Attempt,
  job: JobDefinition,
  transaction: HandlerTransaction,
  log: Logger,
): Promise<unknown> {
  const stored = attempt.run.payload
  const payload = job.parse === undefined ? stored : await job.parse(stored)
  const value = await job.run(new CallContext(attempt, payload, transaction, log))
  if (transaction.pending !== undefined) await transaction.pending
  return value
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
