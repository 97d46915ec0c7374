/** The messages between the pool and its threads. A thread runs one handler at a time, so messages carry no run id. */
import type { ClaimedRun } from '../../core/store.js'
import type { PackedError } from './packed-error.js'

export type ToThread = LoadMessage | RunMessage | { readonly kind: 'abort' }

export interface LoadMessage {
  readonly kind: 'load'
  readonly module: string
}

export interface RunMessage {
  readonly kind: 'run'
  readonly module: string
  readonly job: string
  readonly run: ClaimedRun
  readonly payload: unknown
  /** One 32-bit number: 0, or 1 plus the index of the abort's reason in `ABORT_REASONS`. */
  readonly aborted: SharedArrayBuffer
}

export type FromThread =
  | { readonly kind: 'loaded' }
  /** The handler has begun: if the thread dies from now on, the attempt fails. */
  | { readonly kind: 'began' }
  | LogMessage
  | { readonly kind: 'returned'; readonly result: unknown }
  | { readonly kind: 'threw'; readonly error: PackedError }

export interface LogMessage {
  readonly kind: 'log'
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly fields: Readonly<Record<string, PackedError>>
  readonly message: string
}
