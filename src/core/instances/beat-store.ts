/**
 * The part of a store that the beat thread uses to send beats and renew locks while the main thread is blocked. Threads
 * share no objects, so the beat thread opens the store itself, from data.
 */

import type { Lease, RenewRequest } from '../locks/lease.js'
import type { BeatRequest, BeatResult } from './instance.js'

/** How another thread opens the same store. */
export interface StoreSource {
  /** The URL of a module that exports an `openBeatStore`. */
  readonly module: string
  /** The argument of `openBeatStore`: any value that the structured clone algorithm copies. */
  readonly options: unknown
}

/** Why another thread cannot open the store. The reason completes a log line and says what to change. */
export interface NoSource {
  readonly because: string
}

export interface BeatStore {
  /** Connects before the first operation, which otherwise connects itself. */
  open(): Promise<void>
  beat(request: BeatRequest): Promise<BeatResult>
  renew(requests: readonly RenewRequest[]): Promise<readonly (Lease | undefined)[]>
  close(): Promise<void>
}

export interface BeatStoreModule {
  openBeatStore(options: unknown): BeatStore
}
