/** Converts runs to messages for sinks, and deliveries to outcomes of runs. */

import type { Json } from '../../core/checks/json.js'
import { LIMITS } from '../../core/defaults.js'
import { errorRecord, failure } from '../../core/errors.js'
import { messageOf } from '../../core/runs/event.js'
import { decideRetry } from '../../core/runs/retry-policy.js'
import type { Outcome } from '../../core/runs/run.js'
import type { Delivery, SinkMessage, Undelivered } from '../../core/sink.js'
import type { SinkDefinition } from '../definitions.js'
import { type Attempt, abortError } from '../runs/attempt.js'

/** `store` is the store's identity. */
export function sinkMessage({ run }: Attempt, store: string): SinkMessage {
  const { schedule, attempt, token, startedAt, target } = run
  const options = 'sink' in target ? target.options : undefined
  const own = splitOptions(options)
  const key = own.key ?? schedule ?? run.id
  const event = messageOf(run)
  const message = { ...event, dedupeId: `${store}/${event.id}`, key, attempt, token, startedAt }
  return own.options === undefined ? message : { ...message, options: own.options }
}

/** The engine reads `key`; the other options are for the sink. */
function splitOptions(options: Json | undefined): { readonly key?: string; readonly options?: Json } {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return options ? { options } : {}
  const { key, ...rest } = options as { readonly [name: string]: Json }
  if (typeof key !== 'string') return { options }
  return Object.keys(rest).length === 0 ? { key } : { key, options: rest }
}

/** The outcome of a delivery; undefined when the attempt was lost. An acknowledged message counts as delivered even then. */
export function outcomeOf(sink: SinkDefinition, { run, reason }: Attempt, delivery: Delivery): Outcome | undefined {
  if (delivery.delivered === true) return { kind: 'succeeded' }
  if (reason === 'lost') return undefined
  if (reason === 'stop') return { kind: 'released' }
  if (reason === 'cancel') return { kind: 'cancelled' }
  const error = errorRecord(delivery.error)
  const decision = decideRetry(sink.retry, run.id, countedFailures(sink, run, delivery), delivery.error)
  if (!decision.retry || delivery.retryable === false || delivery.pauseSchedule !== undefined) {
    return { kind: 'failed', error }
  }
  return { kind: 'retry', error, delayMs: Math.max(decision.delayMs, requestedDelay(delivery)) }
}

/**
 * How many failures count against the sink's retry limit. An attempt whose message was never sent (`untried`) is not
 * the last one, unless there were twice as many attempts as allowed.
 */
function countedFailures({ retry }: SinkDefinition, { failures }: Attempt['run'], { untried }: Undelivered): number {
  const isLast = failures + 1 >= retry.attempts && failures + 1 < 2 * retry.attempts
  return untried === true && isLast ? retry.attempts - 1 : failures + 1
}

/** The sink returned no outcome for the message, or one that cannot be read. */
export function noAnswer(sink: SinkDefinition, { run, reason }: Attempt): Undelivered {
  const error =
    reason === undefined
      ? failure('TIMEOUT', `sink "${sink.name}" gave no outcome for ${run.id}`)
      : abortError(reason, run)
  return { delivered: false, error }
}

/** The delay that the sink asked for, within bounds. */
function requestedDelay({ retryAfterMs }: Undelivered): number {
  if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs)) return 0
  return Math.min(Math.max(retryAfterMs, 0), LIMITS.backoffMs)
}
