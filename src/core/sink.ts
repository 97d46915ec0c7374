import type { Message } from './event.js'
import type { Json } from './json.js'

/** What a sink delivers: the event, and which attempt this is. */
export interface SinkMessage extends Message {
  /** Messages of one key are handed over oldest first. */
  readonly key: string
  readonly attempt: number
  readonly token: number
  /** What the schedule says about its delivery: topic, headers, URL. */
  readonly options?: Json
}

export type Delivery =
  | { readonly delivered: true }
  | { readonly delivered: false; readonly error: unknown; readonly retryable?: boolean; readonly retryAfterMs?: number }

/** Where runs go that no handler of this process does. */
export interface Sink {
  /** Resolves to one outcome per message, in order, after the broker's acknowledgement. */
  deliver(messages: readonly SinkMessage[], signal: AbortSignal): Promise<readonly Delivery[]>
  open?(): Promise<void>
  close?(): Promise<void>
}
