/** What a delivery comes to for its run, and what a sink is told of a run. */
import { LIMITS } from '../../core/defaults.js'
import { errorRecord, failure } from '../../core/errors.js'
import { eventId, messageOf, nominalTime } from '../../core/event.js'
import type { Json } from '../../core/json.js'
import { decideRetry } from '../../core/retry.js'
import type { Outcome } from '../../core/run.js'
import type { Delivery, SinkMessage, Undelivered } from '../../core/sink.js'
import type { SinkDefinition } from '../definitions.js'
import { type Attempt, abortError } from '../runs/attempt.js'

/** Once for every message, so what most of them are is written out at once. `store` is the store's identity. */
export function sinkMessage({ run }: Attempt, store: string): SinkMessage {
  const { schedule, payload, attempt, token, startedAt, target } = run
  const options = 'sink' in target ? target.options : undefined
  if (schedule !== undefined && options === undefined) {
    const [id, generated_at] = [eventId(run), nominalTime(run)]
    const dedupeId = `${store}/${id}`
    return { id, generated_at, schedule_id: schedule, payload, dedupeId, key: schedule, attempt, token, startedAt }
  }
  const words = deliveryWords(options)
  const key = words.key ?? schedule ?? run.id
  const event = messageOf(run)
  const message = { ...event, dedupeId: `${store}/${event.id}`, key, attempt, token, startedAt }
  return words.options === undefined ? message : { ...message, options: words.options }
}

/** `key` is the engine's to read; the rest is between the schedule and its sink. */
function deliveryWords(options: Json | undefined): { readonly key?: string; readonly options?: Json } {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return options ? { options } : {}
  const { key, ...rest } = options as { readonly [name: string]: Json }
  if (typeof key !== 'string') return { options }
  return Object.keys(rest).length === 0 ? { key } : { key, options: rest }
}

/** Undefined when the attempt was lost: then there is nothing of ours to settle. What was acknowledged counts all the same. */
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
  return { kind: 'retry', error, delayMs: Math.max(decision.delayMs, askedDelay(delivery)) }
}

/** An attempt that asked nobody is not the last one; twice as many as there may be are enough all the same. */
function countedFailures({ retry }: SinkDefinition, { failures }: Attempt['run'], { untried }: Undelivered): number {
  const isLast = failures + 1 >= retry.attempts && failures + 1 < 2 * retry.attempts
  return untried === true && isLast ? retry.attempts - 1 : failures + 1
}

/** Where a sink said nothing of a message, or nothing that can be read. */
export function noAnswer(sink: SinkDefinition, { run, reason }: Attempt): Undelivered {
  const error =
    reason === undefined
      ? failure('TIMEOUT', `sink "${sink.name}" gave no outcome for ${run.id}`)
      : abortError(reason, run)
  return { delivered: false, error }
}

/** What a broker or a sink of the user's asks for, as far as it makes sense. */
function askedDelay({ retryAfterMs }: Undelivered): number {
  if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs)) return 0
  return Math.min(Math.max(retryAfterMs, 0), LIMITS.backoffMs)
}
