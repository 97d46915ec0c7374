/** The jobs and sinks that the code of an instance defines. They contain functions, so they never leave the process. */

import type { Json } from '../core/checks/json.js'
import type { Logger } from '../core/logger.js'
import type { Message } from '../core/runs/event.js'
import type { KeyRule } from '../core/runs/key.js'
import type { RetryPolicy } from '../core/runs/retry-policy.js'
import type { Keep, Run } from '../core/runs/run.js'
import type { Sink } from '../core/sink.js'

export interface JobDefinition {
  readonly name: string
  /** Checks a stored payload and returns the payload for the handler; absent when the job has no schema. */
  readonly parse?: (payload: Json) => Promise<unknown>
  /** A function for the main thread, or the URL of a module whose default export runs in a worker thread. */
  readonly run: ((context: HandlerContext<unknown>) => unknown) | URL
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  readonly keep: Keep
  /** How many attempts of the job one instance runs at a time. */
  readonly concurrency: number
  readonly exclusive?: Exclusive
}

export type ThreadedJob = JobDefinition & { readonly run: URL }

export function isThreaded(job: JobDefinition): job is ThreadedJob {
  return typeof job.run !== 'function'
}

export interface Exclusive {
  readonly rule: KeyRule
  /** Computes the value of the key from a payload; absent when the rule alone determines it. */
  readonly by?: (payload: unknown) => unknown
}

export interface HandlerContext<Payload, Tx = unknown> {
  readonly payload: Payload
  /** The nominal instant of the tick; for runs without a tick, their creation. */
  readonly tick: Date
  readonly run: RunInfo
  /** The event as a sink would get it. Its id is the same in every attempt, so receivers can dedupe by it. */
  readonly event: Message
  /**
   * The fencing token, which grows with every attempt that held the same key. Pass it to systems that can refuse an
   * older token.
   */
  readonly token: number
  /** Fires when the attempt must end: timeout, cancel, stop, or a lost lease. Its reason says which. */
  readonly signal: AbortSignal
  readonly log: Logger
  /**
   * Commits the handler's writes and the run's completion together, once per attempt. `tx` is the store's own
   * transaction handle. The returned value is the run's result and must be JSON. Throws `STALE` and rolls back if
   * another instance has taken the run over. On SQLite `work` must be synchronous.
   */
  readonly transaction: <T, Given = Tx>(work: (tx: Given) => T | Promise<T>) => Promise<T>
}

/** The argument of a handler in a thread, whose job has the URL of a module as `run`. */
export type ThreadContext<Payload> = Omit<HandlerContext<Payload>, 'transaction'>

export type RunInfo = Pick<Run, 'id' | 'schedule' | 'origin' | 'attempt' | 'createdAt' | 'key' | 'priority'>

export interface SinkDefinition {
  readonly name: string
  readonly sink: Sink
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  /** The most calls in flight. */
  readonly concurrency: number
  /** The most messages in one call. */
  readonly batch: number
  /** The most messages that are claimed and not yet settled. */
  readonly inFlight: number
  readonly lingerMs: number
  readonly ordered: boolean
}
