/**
 * What another thread of this process needs of a store to prove that the process lives while its main thread is blocked.
 * Such a thread shares no objects with the main one, so it opens the store again, from data.
 */
import type { BeatRequest, BeatResult } from './instance.js'
import type { Lease, RenewRequest } from './lease.js'

/** How to open a store again. */
export interface StoreSource {
  /** The URL of a module that exports an `openBeatStore`. */
  readonly module: string
  /** Its argument: anything that the structured clone algorithm copies. */
  readonly options: unknown
}

/** Why a store cannot be opened again. The reason ends a sentence, and says what to do about it. */
export interface NoSource {
  readonly because: string
}

/** A second way into a store. */
export interface BeatStore {
  /** Connects. An operation that comes before it does the same, and takes longer. */
  open(): Promise<void>
  beat(request: BeatRequest): Promise<BeatResult>
  renew(requests: readonly RenewRequest[]): Promise<readonly (Lease | undefined)[]>
  close(): Promise<void>
}

export interface BeatStoreModule {
  openBeatStore(options: unknown): BeatStore
}
