/** What a tick may meet, and what is then done. These are data: they live in the store with the schedule. */

/** What happens to a tick while an earlier run of the same schedule is unfinished. */
export type Overlap = 'allow' | 'skip' | 'queue-one' | 'queue-all' | 'cancel-running'

/** What happens to ticks that nobody recorded in time. */
export interface Missed {
  /** `skip` drops them, `latest` keeps the newest, `all` keeps every one. */
  readonly policy: 'skip' | 'latest' | 'all'
  /** Only ticks at most this old are caught up. */
  readonly withinMs?: number
  /** `all` keeps at most this many, the newest. */
  readonly max: number
  /** Ticks at most this late were not missed at all. */
  readonly graceMs: number
}

/** Why a tick or a run did not happen. */
export type SkipReason =
  /** Nobody was up to record it, and the missed policy dropped it. */
  | 'missed'
  /** It could not start before its deadline. */
  | 'deadline'
  /** An earlier run of the schedule was unfinished. */
  | 'overlap'
  /** Its exclusive key was held. */
  | 'busy'
  /** The schedule was paused. */
  | 'paused'
  /** The schedule's timeline was changed before it started. */
  | 'replaced'
  /** The schedule was removed before it started. */
  | 'removed'

export const DEFAULT_MISSED: Missed = { policy: 'latest', max: 1_000, graceMs: 10_000 }
