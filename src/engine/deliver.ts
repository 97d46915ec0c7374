import { errorRecord, failure } from '../core/errors.js'
import { messageOf } from '../core/event.js'
import { decideRetry, MAX_BACKOFF_MS } from '../core/retry.js'
import type { Outcome } from '../core/run.js'
import type { Delivery, SinkMessage } from '../core/sink.js'
import { type Attempt, abortError, FENCED } from './attempt.js'
import type { SinkDefinition } from './work.js'
import { ABORT_WINDOW_MS } from './worker.js'

/** Hands a batch of runs to a sink: one outcome per attempt, in order; undefined for those that were lost. */
export async function deliver(sink: SinkDefinition, attempts: readonly Attempt[]): Promise<(Outcome | undefined)[]> {
  const signal = AbortSignal.any(attempts.map((attempt) => attempt.signal))
  for (const attempt of attempts) attempt.abortAfter(sink.timeoutMs, ABORT_WINDOW_MS)
  const answer = callSink(sink, attempts, signal)
  try {
    return await Promise.all(
      attempts.map(async (attempt, at) => {
        const answered = await attempt.outcome(answer)
        const delivery = answered === FENCED ? undefined : answered[at]
        return outcomeOf(sink, attempt, delivery ?? noAnswer(sink, attempt))
      }),
    )
  } finally {
    for (const attempt of attempts) attempt.end()
  }
}

async function callSink(sink: SinkDefinition, attempts: readonly Attempt[], signal: AbortSignal) {
  try {
    const answers = await sink.sink.deliver(attempts.map(sinkMessage), signal)
    if (Array.isArray(answers)) return answers as readonly (Delivery | undefined)[]
    throw failure('OPTION_INVALID', `sink "${sink.name}" must answer with a list, one outcome per message`)
  } catch (error) {
    return attempts.map((): Delivery => ({ delivered: false, error }))
  }
}

function sinkMessage({ run }: Attempt): SinkMessage {
  const options = 'sink' in run.target ? run.target.options : undefined
  return {
    ...messageOf(run),
    key: run.schedule ?? run.id,
    attempt: run.attempt,
    token: run.token,
    startedAt: run.startedAt,
    ...(options === undefined ? {} : { options }),
  }
}

function noAnswer(sink: SinkDefinition, { run, reason }: Attempt): Delivery {
  const error =
    reason === undefined
      ? failure('TIMEOUT', `sink "${sink.name}" gave no outcome for ${run.id}`)
      : abortError(reason, run)
  return { delivered: false, error }
}

/** What a broker or a sink of the user's asks for, as far as it makes sense. */
function askedDelay(retryAfterMs: number | undefined): number {
  return Number.isFinite(retryAfterMs) ? Math.min(Math.max(retryAfterMs as number, 0), MAX_BACKOFF_MS) : 0
}

function outcomeOf(sink: SinkDefinition, { run, reason }: Attempt, delivery: Delivery): Outcome | undefined {
  if (delivery.delivered) return { kind: 'succeeded' }
  if (reason === 'lost') return undefined
  if (reason === 'stop') return { kind: 'released' }
  if (reason === 'cancel') return { kind: 'cancelled' }
  const error = errorRecord(delivery.error)
  const decision = decideRetry(sink.retry, run.id, run.failures + 1, delivery.error)
  if (!decision.retry || delivery.retryable === false) return { kind: 'failed', error }
  return { kind: 'retry', error, delayMs: Math.max(decision.delayMs, askedDelay(delivery.retryAfterMs)) }
}
