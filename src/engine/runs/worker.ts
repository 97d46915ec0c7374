/**
 * Runs one attempt of a job: parses its payload, calls the handler, and turns what happened into an outcome.
 *
 * An aborted attempt has its window to return; after it the attempt is fenced and settled without it. A handler in a thread
 * is ended with its thread. Another one may go on: nothing that it does can be committed through Belfry, but it may overlap
 * its successor. One warning names it.
 */
import { errorRecord } from '../../core/errors.js'
import { type Json, toJson } from '../../core/json.js'
import { type Logger, withFields } from '../../core/logger.js'
import { decideRetry } from '../../core/retry.js'
import type { Outcome } from '../../core/run.js'
import type { ClaimedRun, RunStore } from '../../core/store.js'
import type { JobDefinition } from '../definitions.js'
import type { ThreadPool } from '../threads/thread-pool.js'
import { type Attempt, abortError, FENCED } from './attempt.js'
import { CallContext } from './handler-context.js'
import { HandlerTransaction } from './handler-transaction.js'

/** How long a handler has to return after a timeout or a cancel, before it is fenced. */
export const ABORT_WINDOW_MS = 5_000
/** The same when the instance stops. */
export const STOP_WINDOW_MS = 1_000

/** What attempts need of their instance. */
export interface AttemptGround {
  readonly store: { readonly runs: Pick<RunStore, 'transact'> }
  readonly log: Logger
  readonly threads: Pick<ThreadPool, 'run' | 'end'>
}

/**
 * Runs the attempt to its end. Undefined when it was lost: then there is nothing of ours left to settle. A handler that
 * returns at once is answered for at once: no timer and no promise is made for it.
 */
export function runAttempt(
  attempt: Attempt,
  job: JobDefinition,
  ground: AttemptGround,
): Promise<Outcome | undefined> | Outcome | undefined {
  const transaction = new HandlerTransaction(ground.store.runs, attempt)
  const { payload } = attempt.run
  const call = callOf(attempt, job, transaction, ground)
  if (job.parse !== undefined) return watch(attempt, job, transaction, ground, job.parse(payload).then(call))
  let value: unknown
  try {
    value = call(payload)
    if (!isPromise(value) && transaction.pending === undefined) return returned(attempt, job, transaction, value)
  } catch (error) {
    value = Promise.reject(error)
  }
  return watch(attempt, job, transaction, ground, Promise.resolve(value))
}

/** Calls the handler with its parsed payload: here, or in a thread. */
function callOf(
  attempt: Attempt,
  { name, run: handler }: JobDefinition,
  transaction: HandlerTransaction,
  { log, threads }: AttemptGround,
): (payload: unknown) => unknown {
  if (typeof handler === 'function') {
    return (payload) => handler(new CallContext(attempt, payload, transaction, log))
  }
  const { id, attempt: count } = attempt.run
  const own = withFields(log, { run: id, attempt: count })
  return (payload) => threads.run({ attempt, job: name, module: handler, payload, log: own })
}

/** Or anything that can be waited for like one: queries of some libraries are functions with a `then`. */
function isPromise(value: unknown): boolean {
  return ((typeof value === 'object' && value !== null) || typeof value === 'function') && 'then' in value
}

/** Sees to it that an attempt which takes its time ends in time. */
async function watch(
  attempt: Attempt,
  job: JobDefinition,
  transaction: HandlerTransaction,
  { log, threads }: AttemptGround,
  work: Promise<unknown>,
): Promise<Outcome | undefined> {
  attempt.abortAfter(job.timeoutMs - attempt.durationMs(), ABORT_WINDOW_MS)
  try {
    const value = await attempt.outcome(afterTransaction(work, transaction))
    if (value !== FENCED) return returned(attempt, job, transaction, value)
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

/** A handler that did not wait for its transaction has not ended before that has. */
async function afterTransaction(work: Promise<unknown>, transaction: HandlerTransaction): Promise<unknown> {
  const value = await work
  if (transaction.pending !== undefined) await transaction.pending
  return value
}

function returned(
  attempt: Attempt,
  job: JobDefinition,
  transaction: HandlerTransaction,
  value: unknown,
): Outcome | undefined {
  if (attempt.reason === 'lost') return undefined
  return committedOutcome(attempt, transaction) ?? { kind: 'succeeded', result: resultOf(job, value) }
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
