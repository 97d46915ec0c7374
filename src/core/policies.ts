/**
 * The choices of a schedule's author. Each list stands only here: types, checks, the choices of the command line and
 * the enums of the HTTP API derive from it. The words are stored with the schedule.
 */
import { DEFAULTS } from './defaults.js'

/** What happens to a tick while an earlier run of the same schedule is unfinished. */
export const OVERLAPS = ['allow', 'skip', 'queue-one', 'queue-all', 'cancel-running'] as const
export type Overlap = (typeof OVERLAPS)[number]

/** What happens to ticks that were not recorded in time: drop all of them, keep the newest, or keep every one. */
export const MISSED_POLICIES = ['skip', 'latest', 'all'] as const
export type MissedPolicy = (typeof MISSED_POLICIES)[number]

export interface Missed {
  readonly policy: MissedPolicy
  /** Only ticks at most this old are recorded. */
  readonly withinMs?: number
  /** `all` keeps at most this many, the newest. */
  readonly max: number
  /** A tick that is at most this late was not missed. */
  readonly graceMs: number
}

/**
 * What `missed` says about ticks that were recorded in time and that no worker has started: `drop` the ones beyond the
 * policy, or `keep` them all. `plan.ts` has the rule.
 */
export const BACKLOGS = ['drop', 'keep'] as const
export type Backlog = (typeof BACKLOGS)[number]

/** What a first attempt does when its exclusive key is held. A run that has begun before always waits. */
export const WHEN_BUSY = ['skip', 'wait'] as const
export type WhenBusy = (typeof WHEN_BUSY)[number]

/** What happens to a schedule that has no tick left: it is removed together with its history, or kept. */
export const ON_FINISH = ['remove', 'keep'] as const
export type OnFinish = (typeof ON_FINISH)[number]

/** Why a tick or a run did not happen. */
export const SKIP_REASONS = [
  /** No instance recorded it in time, or no worker started it in time, and the missed policy dropped it. */
  'missed',
  /** It could not start before its deadline. */
  'deadline',
  /** An earlier run of the schedule was unfinished. */
  'overlap',
  /** Its exclusive key was held. */
  'busy',
  /** The schedule was paused. */
  'paused',
  /** The schedule's timeline was changed before it started. */
  'replaced',
  /** The schedule was removed before it started. */
  'removed',
] as const
export type SkipReason = (typeof SKIP_REASONS)[number]

export const DEFAULT_MISSED: Missed = { ...DEFAULTS.schedule.missed, graceMs: DEFAULTS.instance.graceMs }
