import type { Json } from '../checks/json.js'
import { LIMITS } from '../defaults.js'
import type { ErrorRecord } from '../errors.js'
import type { Overlap, SkipReason } from '../policies.js'
import type { RunKey } from './key.js'

/** `transitions.ts` says which state may follow which. */
export const UNFINISHED_STATES = ['waiting', 'ready', 'running'] as const
export const FINISHED_STATES = ['succeeded', 'failed', 'cancelled', 'skipped'] as const
export const RUN_STATES = [...UNFINISHED_STATES, ...FINISHED_STATES] as const
export type RunState = (typeof RUN_STATES)[number]

/** Which runs stay in the history once they have ended. */
export const KEEPS = ['all', 'failures', 'none'] as const
export type Keep = (typeof KEEPS)[number]

/** What executes a run: a job's handler, or a sink that delivers it. */
export type Target = { readonly job: string } | { readonly sink: string; readonly options?: Json }

export const ORIGINS = ['tick', 'trigger', 'backfill', 'enqueue'] as const
export type Origin = (typeof ORIGINS)[number]

/** What a waiting run waits for: for its key to be computed, for an earlier run of its schedule, or for the key's lease. */
export const WAITS_FOR = ['stamp', 'overlap', 'key'] as const
export type WaitsFor = (typeof WAITS_FOR)[number]

export interface Run {
  /** The store makes it, and gives it to no other run. */
  readonly id: string
  readonly target: Target
  readonly origin: Origin
  readonly schedule?: string
  /** The nominal instant of the tick, or of the trigger. */
  readonly tick?: number
  /** The backfill's name: a repeated request adds no second run. */
  readonly backfill?: string
  readonly payload: Json
  readonly priority: number
  readonly keep: Keep
  readonly key?: RunKey
  /** Among unfinished runs of a job at most one has this key. */
  readonly dedupe?: string

  readonly state: RunState
  readonly waitsFor?: WaitsFor
  readonly reason?: SkipReason
  readonly createdAt: number
  /** When it may start, or start again. */
  readonly readyAt: number
  /** The first attempt must start before this instant. */
  readonly startBy?: number
  /** How often it was claimed. */
  readonly attempt: number
  /** How many of those attempts count against the job's `retry.attempts`. */
  readonly failures: number
  /** How often it was claimed after its instance had died. */
  readonly takeovers: number
  /** The fencing token of the newest attempt. */
  readonly token?: number
  readonly instance?: string
  readonly startedAt?: number
  readonly finishedAt?: number
  readonly cancelRequested?: true
  readonly result?: Json
  readonly error?: ErrorRecord
}

/** A run to create. The store adds id, state and times. */
export interface NewRun {
  readonly target: Target
  readonly origin: Origin
  readonly schedule?: string
  readonly tick?: number
  readonly backfill?: string
  readonly payload: Json
  readonly priority: number
  readonly keep: Keep
  /** When it may start: an instant, or a delay on the store's clock. Default now. */
  readonly readyAt?: number
  readonly delayMs?: number
  readonly key?: RunKey | 'unstamped'
  /** Refuse the run while as many runs as the key's limit are due or executing. */
  readonly checkKey?: boolean
  readonly dedupe?: string
  /** How long the dedupe key goes on refusing after the run has ended. */
  readonly dedupeForMs?: number
  /** For runs of a schedule: the policy towards its unfinished runs. Default `allow`. */
  readonly overlap?: Overlap
}

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: 'succeeded'; readonly result?: Json }
  /** Final. Counts as a failure. */
  | { readonly kind: 'failed'; readonly error: ErrorRecord }
  /** Failed, to be retried after a delay. Counts as a failure. */
  | { readonly kind: 'retry'; readonly error: ErrorRecord; readonly delayMs: number }
  /** Given back unfinished by an instance that stops. Does not count as a failure. */
  | { readonly kind: 'released' }
  | { readonly kind: 'cancelled'; readonly error?: ErrorRecord }

/** Whether the run has not ended and was never claimed. */
export function isUnclaimed(run: Run): boolean {
  return run.attempt === 0 && (run.state === 'ready' || run.state === 'waiting')
}

export function isFinished({ state }: Pick<Run, 'state'>): boolean {
  return (FINISHED_STATES as readonly RunState[]).includes(state)
}

/** Whether a run that ended stays in the history. */
export function isKept(keep: Keep, state: RunState): boolean {
  return keep === 'all' || (keep === 'failures' && state !== 'succeeded')
}

export const MAX_TAKEOVERS = LIMITS.takeovers
