/**
 * The sink contract: how messages of runs are delivered outside of handlers.
 *
 * - `deliver` takes a batch. It resolves to one outcome per message, in order. An outcome is `delivered` only after the
 *   broker's acknowledgement. Until then the run stays unfinished; after any failure or crash it is delivered again
 *   with the same id. So delivery is at-least-once, and receivers dedupe by `id`.
 * - The failure of one message is a value (`Undelivered`). The message is retried with backoff for hours, unless the
 *   value has `retryable: false`. Then the run is `failed` with the reason, and can be retried by hand.
 * - An unreachable sink throws, or returns `unreachable` for messages that it could not deliver. When a call delivers
 *   nothing for that reason, the engine tries one other message. If the sink accepts it, the messages of the failed
 *   call count as failed. If not, there is an outage: all messages for this sink wait in the store and use up no
 *   attempts, and every few seconds the engine probes with one message. So return `unreachable` for failures of the
 *   broker, not of the message: no connection, no quorum, no leader, a broker that refuses everything.
 * - Each instance delivers the messages of a key oldest first. Only with `ordered` does a message that is being retried
 *   hold back later ones.
 * - A call that waits for one slow receiver of many may call `onSlow`. The call then no longer counts among `concurrency`
 *   and `inFlight`, and the engine goes on with other messages. The sink bounds how many such calls it has.
 * - The signal fires when the engine no longer needs the answer: timeout, stop, a lost lease. The call must then end
 *   soon, and messages without an acknowledgement count as not delivered.
 *
 * `testing/sink-contract.ts` tests this contract. A sink is complete when the tests pass.
 */
import type { Duration } from '../time/duration.js'
import type { Json } from './checks/json.js'
import type { Message } from './runs/event.js'
import type { RetryOptions } from './runs/retry-policy.js'

export interface Sink {
  /** Resolves to one outcome per message, in order, after the broker's acknowledgement. */
  deliver(messages: readonly SinkMessage[], signal: AbortSignal, onSlow?: () => void): Promise<readonly Delivery[]>
  /**
   * Checks the `toOptions` of a schedule that is put (`{}` when there are none). It throws an error for the author, and
   * makes no request. `key` is `toOptions.key`, which is not among the options. A schedule that another process put is
   * not checked again: `deliver` must handle wrong options as a failure.
   */
  check?(options: Json, key?: string): void
  /**
   * Called with the prefix of all keys of the store, if the store has such keys. A sink on the same server must not
   * write to keys with this prefix, whatever a schedule requests.
   */
  reserve?(keyPrefix: string): void
  /** Connects. When it throws, the sink counts as unreachable, and `open` is called again before the next try. */
  open?(): Promise<void>
  /** Called when no call is in flight and none follows. */
  close?(): Promise<void>
  /** The sink's own preferences. The defaults of `DeliveryOptions` apply to the rest. */
  readonly delivery?: DeliveryOptions
}

/** A message with the attempt that delivers it. */
export interface SinkMessage extends Message {
  /**
   * The id by which a broker may drop repeated messages: the same in every attempt, and different for messages of other
   * stores, which may have the same `id`.
   */
  readonly dedupeId: string
  /** The key for ordering and partitioning: `toOptions.key`, else the schedule's id. */
  readonly key: string
  /** Counts from 1. */
  readonly attempt: number
  /** Grows with every attempt of the run. */
  readonly token: number
  /** When this attempt began, by the store's clock. */
  readonly startedAt: number
  /** The schedule's `toOptions` without `key`: topic, headers, URL. */
  readonly options?: Json
}

export type Delivery = Delivered | Undelivered

export interface Delivered {
  readonly delivered: true
}

export interface Undelivered {
  readonly delivered: false
  /** Its message is stored with the run. An `excerpt` of the receiver's answer is shown to operators only. */
  readonly error: unknown
  /** False when a retry cannot succeed. */
  readonly retryable?: boolean
  /**
   * The message was not sent, because the receiver has not answered other messages lately. Such an attempt is not the
   * final one, up to twice as many attempts as allowed.
   */
  readonly untried?: boolean
  /** The delay that the receiver asks for. The backoff is its lower bound, a day its upper bound. */
  readonly retryAfterMs?: number
  /** The broker failed, not the message: other messages would fail too. */
  readonly unreachable?: boolean
  /** The receiver wants no more messages of this schedule: Belfry pauses it with this note. */
  readonly pauseSchedule?: string
}

/** How one instance uses a sink. Belfry's own sinks take these among their options. */
export interface DeliveryOptions {
  /** Calls of `deliver` in flight at a time. Default 4. */
  readonly concurrency?: number
  /** The most messages in one call. Default 100. */
  readonly batch?: number
  /** How long a call that is not full waits for more messages. Default 0. */
  readonly linger?: Duration
  /** The most messages that are claimed and not yet settled. Default 2 × concurrency × batch. */
  readonly inFlight?: number
  /** How long one call may take. Default 30 s. */
  readonly timeout?: Duration
  /** Default 25 attempts, 1 s, 2 s, 4 s … up to an hour apart: about 14 hours. */
  readonly retry?: RetryOptions
  /** A message that is being retried holds back the later ones of its key. Default false. */
  readonly ordered?: boolean
}

/** The names of these options, for sinks that check their own options. */
export const DELIVERY_OPTIONS = ['concurrency', 'batch', 'linger', 'inFlight', 'timeout', 'retry', 'ordered'] as const

/** Picks the delivery options from a sink's options. They replace the sink's own preferences. */
export function deliveryOptions(given: DeliveryOptions, preferred: DeliveryOptions = {}): DeliveryOptions {
  const options: Record<string, unknown> = { ...preferred }
  for (const name of DELIVERY_OPTIONS) if (given[name] !== undefined) options[name] = given[name]
  return options
}

export const DELIVERED: Delivery = { delivered: true }
