/** The messages between the main thread and the beat thread. */
import type { StoreSource } from '../../core/instances/beat-store.js'
import type { RenewRequest } from '../../core/locks/lease.js'

export interface BeatThreadData {
  readonly source: StoreSource
  /** A `SharedInstant`: when the main loop last turned. */
  readonly turnedAt: SharedArrayBuffer
  readonly maxBlockMs: number
  /** Whether the logger of the main thread prints warnings. */
  readonly warns: boolean
}

export interface BeatingInstance {
  readonly id: string
  readonly leaseMs: number
  readonly heartbeatMs: number
  /** A `SharedInstant`: when the main thread sent its newest accepted beat. */
  readonly mainBeatAt: SharedArrayBuffer
  /** A `SharedInstant`: when the beat thread sent its newest accepted beat. */
  readonly threadBeatAt: SharedArrayBuffer
}

/** A lock, how often it is renewed, and when its last acquisition or renewal was sent. */
export type RenewedLock = RenewRequest & { readonly everyMs: number; readonly sentAt: number }

export type ToBeatThread =
  /** Absent when the instance has left or was given up. */
  | { readonly kind: 'instance'; readonly instance?: BeatingInstance }
  | { readonly kind: 'locks'; readonly held: readonly RenewedLock[]; readonly dropped: readonly string[] }
  /** Names the handlers on the main thread, for warnings. */
  | { readonly kind: 'running'; readonly running: string }
  | { readonly kind: 'close' }

/** A line for the logger of the main thread. */
export interface FromBeatThread {
  readonly level: 'debug' | 'warn'
  readonly fields: object
  readonly message: string
}
