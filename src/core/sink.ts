/**
 * The sink contract: where runs go that no handler of this process does.
 *
 * - `deliver` is batch-first. It resolves to one outcome per message, in order, and says `delivered` only once the broker
 *   has acknowledged: until then the run stays, and whatever happens in between is answered by delivering it again, with
 *   the same id. So delivery is at-least-once, and receivers dedupe by `id`.
 * - A failure is a value, about one message. It is tried again with backoff, over hours, unless it says that this is in
 *   vain; then the run is `failed`, with the reason, and can be retried by hand.
 * - A sink that is unreachable throws, or says `unreachable` of what it could not deliver. When a call delivers nothing
 *   for that reason, another message is tried: if it is delivered, the failure counts against the messages of the call.
 *   Otherwise there is an outage: everything for this sink waits in the store, uses up no attempts, and one message is
 *   tried every few seconds. So say it of whatever concerns the broker and not the message: no connection, no quorum, no
 *   leader, a broker that takes nothing.
 * - Messages of one key are handed over oldest first, by each instance. Only with `ordered` does one that is being retried
 *   hold back those that follow.
 * - The signal fires when nobody waits for the answer any more: timeout, stop, a lost lease. What is not acknowledged by
 *   then is answered as not delivered, soon.
 *
 * `testing/sink-contract.ts` is this page as tests; a sink is done when they pass.
 */
import type { Duration } from '../time/duration.js'
import type { Message } from './event.js'
import type { Json } from './json.js'
import type { RetryOptions } from './retry.js'

export interface Sink {
  /** Resolves to one outcome per message, in order, after the broker's acknowledgement. */
  deliver(messages: readonly SinkMessage[], signal: AbortSignal): Promise<readonly Delivery[]>
  /**
   * Looks at what a schedule says about its delivery, when it is put (`{}` when it says nothing): throws what is wrong
   * with it. It asks nobody, and it is no guard: what was put elsewhere is delivered with what it says, and fails if that
   * makes no sense.
   */
  check?(options: Json): void
  /** Makes ready to deliver. When it throws, the sink is unreachable, and `open` is called again before the next try. */
  open?(): Promise<void>
  /** No call is under way, and none follows. */
  close?(): Promise<void>
  /** How it wants to be used; what is absent is as in `DeliveryOptions`. */
  readonly delivery?: DeliveryOptions
}

/** What a sink delivers: the event, the same in every attempt, and which attempt this is. */
export interface SinkMessage extends Message {
  /**
   * What a broker may drop repetitions by: the same in every attempt, and different for events of other stores, which may
   * have the same `id` where several Belfrys share a stream.
   */
  readonly dedupeId: string
  /** What orders and partitions: `toOptions.key`, else the schedule's id. */
  readonly key: string
  /** Counts from 1. */
  readonly attempt: number
  /** Grows with every attempt of the run. */
  readonly token: number
  /** When this attempt began, by the store's clock. */
  readonly startedAt: number
  /** What the schedule says about its delivery, apart from its key: topic, headers, URL. */
  readonly options?: Json
}

export type Delivery = Delivered | Undelivered

export interface Delivered {
  readonly delivered: true
}

export interface Undelivered {
  readonly delivered: false
  /** Why. Its message is kept with the run; an `excerpt` of a receiver's words is shown to operators only. */
  readonly error: unknown
  /** False when trying again would be in vain. */
  readonly retryable?: boolean
  /** The receiver was not asked, because it has not answered others lately: the run fails for good only after it was. */
  readonly untried?: boolean
  /** What the receiver asks for; the wait is never shorter than the backoff, nor longer than a day. */
  readonly retryAfterMs?: number
  /** The broker has failed, not the message: no other message would get through either. */
  readonly unreachable?: boolean
  /** The receiver wants nothing more of this schedule: it is paused, with this note. */
  readonly pauseSchedule?: string
}

/** How a sink is used by one instance. Every sink of Belfry's takes these among its own options. */
export interface DeliveryOptions {
  /** Calls of `deliver` that are under way at a time. Default 4. */
  readonly concurrency?: number
  /** Messages in one call at the most. Default 100. */
  readonly batch?: number
  /** How long a call waits for more messages while it is not full. Default 0. */
  readonly linger?: Duration
  /** Messages that are taken from the store and not yet settled, at the most. Default twice what all calls can hold. */
  readonly inFlight?: number
  /** How long one call may take. Default 30 s. */
  readonly timeout?: Duration
  /** Default 25 attempts, 1 s, 2 s, 4 s … up to an hour apart: about 14 hours. */
  readonly retry?: RetryOptions
  /** A message that is being retried holds back the later ones of its key. Default false. */
  readonly ordered?: boolean
}

/** The names of those options, for sinks that check their own. */
export const DELIVERY_OPTIONS = ['concurrency', 'batch', 'linger', 'inFlight', 'timeout', 'retry', 'ordered'] as const

/** What a sink's options say about how it wants to be used, over what the sink itself prefers. */
export function deliveryOptions(given: DeliveryOptions, preferred: DeliveryOptions = {}): DeliveryOptions {
  const options: Record<string, unknown> = { ...preferred }
  for (const name of DELIVERY_OPTIONS) if (given[name] !== undefined) options[name] = given[name]
  return options
}

export const DELIVERED: Delivery = { delivered: true }
