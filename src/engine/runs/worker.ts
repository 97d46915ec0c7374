/**
 * Runs one attempt of a job: parses its payload, calls the handler, and turns the result or error into an outcome.
 *
 * The handler of an aborted attempt has a window in which to return. After it the attempt is fenced and settled without
 * its handler. A handler in a thread is ended with its thread. A handler on the main thread may continue and overlap
 * its successor, but cannot commit anything through Belfry; one warning names it.
 */

import { type Json, toJson } from '../../core/checks/json.js'
import { errorRecord } from '../../core/errors.js'
import { type Logger, withFields } from '../../core/logger.js'
import { decideRetry } from '../../core/runs/retry-policy.js'
import type { Outcome } from '../../core/runs/run.js'
import type { ClaimedRun, RunStore } from '../../core/store.js'
import type { JobDefinition } from '../definitions.js'
import type { ThreadPool } from '../threads/thread-pool.js'
import { type Attempt, abortError, FENCED } from './attempt.js'
import { CallContext } from './handler-context.js'
import { HandlerTransaction } from './handler-transaction.js'

/** How long a handler has to return after a timeout or a cancel, before it is fenced. */
export const ABORT_WINDOW_MS = 5_000
/** How long a handler has to return when the instance stops, before it is fenced. */
export const STOP_WINDOW_MS = 1_000

export interface AttemptContext {
  readonly store: { readonly runs: Pick<RunStore, 'transact'> }
  readonly log: Logger
  readonly threads: Pick<ThreadPool, 'run' | 'end'>
}

/** Returns undefined when the lease was lost: another instance has the run and writes its outcome. */
export async function runAttempt(
  attempt: Attempt,
  job: JobDefinition,
  context: AttemptContext,
): Promise<Outcome | undefined> {
  const { store, log, threads } = context
  const transaction = new HandlerTransaction(store.runs, attempt)
  attempt.abortAfter(job.timeoutMs, ABORT_WINDOW_MS)
  try {
    const value = await attempt.outcome(callHandler(attempt, job, transaction, context))
    if (value !== FENCED) return returnedOutcome(attempt, job, transaction, value)
    transaction.abandon(abortError(attempt.reason ?? 'lost', attempt.run))
    const hasEnded = typeof job.run !== 'function' && (await threads.end(attempt))
    return committedOutcome(attempt, transaction) ?? fencedOutcome(attempt, job, hasEnded, log)
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

async function callHandler(
  attempt: Attempt,
  { name, run: handler, parse }: JobDefinition,
  transaction: HandlerTransaction,
  { log, threads }: AttemptContext,
): Promise<unknown> {
  const { run } = attempt
  const payload = parse === undefined ? run.payload : await parse(run.payload)
  if (typeof handler !== 'function') {
    const runLog = withFields(log, { run: run.id, attempt: run.attempt })
    return threads.run({ attempt, job: name, module: handler, payload, log: runLog })
  }
  const value = await handler(new CallContext(attempt, payload, transaction, log))
  // The attempt waits for a transaction that its handler did not await.
  if (transaction.pending !== undefined) await transaction.pending
  return value
}

function returnedOutcome(
  attempt: Attempt,
  job: JobDefinition,
  transaction: HandlerTransaction,
  value: unknown,
): Outcome | undefined {
  if (attempt.reason === 'lost') return undefined
  return committedOutcome(attempt, transaction) ?? { kind: 'succeeded', result: resultOf(job, value) }
}

/**
 * A committed transaction counts as success, even if the handler failed or was aborted afterwards. Only a lost run has
 * no outcome here.
 */
function committedOutcome({ reason }: Attempt, { committed }: HandlerTransaction): Outcome | undefined {
  return committed === undefined || reason === 'lost' ? undefined : { kind: 'succeeded', result: committed.result }
}

/** A result that cannot be stored fails the run for good: the work is done, and a retry would repeat it. */
function resultOf(job: JobDefinition, value: unknown): Json {
  try {
    return toJson(value, `the result of job "${job.name}"`)
  } catch (error) {
    throw Object.assign(error as Error, { retryable: false })
  }
}

function fencedOutcome(attempt: Attempt, job: JobDefinition, hasEnded: boolean, log: Logger): Outcome | undefined {
  const { run, reason } = attempt
  const end = hasEnded ? 'its thread was ended' : 'it is fenced, and may overlap its successor'
  log.warn(
    { job: job.name, run: run.id, attempt: run.attempt, reason },
    `a handler did not return after it was aborted: ${end}; let it watch its signal`,
  )
  return abortedOutcome(attempt, job)
}

function failedOutcome(attempt: Attempt, job: JobDefinition, error: unknown): Outcome | undefined {
  return attempt.reason === undefined ? failed(job, attempt.run, error) : abortedOutcome(attempt, job)
}

/** The abort's reason decides the outcome, whatever the handler threw afterwards. */
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
