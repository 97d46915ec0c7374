/** What an instance can do: jobs with their handlers, and sinks. These hold code, so they never leave the process. */
import type { Message } from '../core/event.js'
import type { Json } from '../core/json.js'
import type { KeyRule } from '../core/key.js'
import type { Logger } from '../core/logger.js'
import type { RetryPolicy } from '../core/retry.js'
import type { Keep, Run } from '../core/run.js'
import type { Sink } from '../core/sink.js'

export interface JobDefinition {
  readonly name: string
  /** Checks a stored payload and makes of it what the handler gets; absent when the job has no schema. */
  readonly parse?: (payload: Json) => Promise<unknown>
  /** A function for the main thread, or the URL of a module whose default export runs in a thread of its own. */
  readonly run: ((context: HandlerContext<unknown>) => unknown) | URL
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  readonly keep: Keep
  /** How many attempts of it one instance runs at a time. */
  readonly concurrency: number
  readonly exclusive?: Exclusive
}

/** A job whose handler is the default export of a module. */
export type ThreadedJob = JobDefinition & { readonly run: URL }

export interface Exclusive {
  readonly rule: KeyRule
  /** Present when only code can say what makes a payload the same. */
  readonly by?: (payload: unknown) => unknown
}

/** What a handler is given. */
export interface HandlerContext<Payload> {
  readonly payload: Payload
  /** The nominal instant of the tick; for other runs, when the run was made. */
  readonly tick: Date
  readonly run: RunInfo
  /** The event as a sink would get it: an id that is the same in every attempt, to dedupe by. */
  readonly event: Message
  /** Grows with every attempt that held the same key: pass it to systems that can refuse an older one. */
  readonly token: number
  /** Fires when the attempt must end: timeout, cancel, stop, or a lost lease. Its reason says which. */
  readonly signal: AbortSignal
  readonly log: Logger
  /**
   * Commits the handler's writes and the run's completion together, once per attempt. `tx` is the store's own handle in
   * a transaction; the value is the run's result and must be JSON. Throws `STALE`, and rolls back, when somebody else
   * has the run by then. On SQLite the work must be synchronous.
   */
  readonly transaction: <T, Tx = unknown>(work: (tx: Tx) => T | Promise<T>) => Promise<T>
}

/** What a handler in a thread of its own is given: `run` of its job is the URL of a module. */
export type ThreadContext<Payload> = Omit<HandlerContext<Payload>, 'transaction'>

export type RunInfo = Pick<Run, 'id' | 'schedule' | 'origin' | 'attempt' | 'createdAt' | 'key' | 'priority'>

export interface SinkDefinition {
  readonly name: string
  readonly sink: Sink
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  /** Calls under way at a time, messages in each, and messages taken and not yet settled. */
  readonly concurrency: number
  readonly batch: number
  readonly inFlight: number
  readonly lingerMs: number
  readonly ordered: boolean
}
