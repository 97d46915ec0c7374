/** What the pool and its threads say to each other. One run at a time, so messages need no number. */
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
  /** One 32-bit number: 0, or one more than the place of the abort's reason in `ABORT_REASONS`. */
  readonly aborted: SharedArrayBuffer
}

export type FromThread =
  | { readonly kind: 'loaded' }
  /** The thread has taken the run: from now on its death is the run's. */
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
