/** What the main thread and the beat thread tell each other. */
import type { StoreSource } from '../../core/beat-store.js'
import type { RenewRequest } from '../../core/lease.js'

/** What the beat thread is started with. */
export interface BeatThreadData {
  readonly source: StoreSource
  /** A `SharedInstant`: when the main loop last turned. */
  readonly turnedAt: SharedArrayBuffer
  readonly maxBlockMs: number
  /** Whether warnings are wanted at all. */
  readonly warns: boolean
}

/** An instance that takes part. */
export interface Life {
  readonly instance: string
  readonly leaseMs: number
  readonly heartbeatMs: number
  /** A `SharedInstant`: when the main thread sent its newest beat that was accepted. */
  readonly mainBeatAt: SharedArrayBuffer
  /** The same of the beat thread. */
  readonly threadBeatAt: SharedArrayBuffer
}

/** A lock that is renewed every so often, last by a call that was sent at an instant. */
export type RenewedLock = RenewRequest & { readonly everyMs: number; readonly sentAt: number }

export type ToBeatThread =
  /** Without a life, the instance takes no part any more. */
  | { readonly kind: 'life'; readonly life?: Life }
  | { readonly kind: 'locks'; readonly held: readonly RenewedLock[]; readonly dropped: readonly string[] }
  /** Names the handlers that run in the main thread, for warnings. */
  | { readonly kind: 'running'; readonly running: string }
  | { readonly kind: 'close' }

/** What the logger of the main thread is to say. */
export interface FromBeatThread {
  readonly level: 'debug' | 'warn'
  readonly fields: object
  readonly message: string
}
