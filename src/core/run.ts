import { LIMITS } from './defaults.js'
import type { ErrorRecord } from './errors.js'
import type { Json } from './json.js'
import type { RunKey } from './key.js'
import type { Overlap, SkipReason } from './policies.js'

/** `transitions.ts` says which state may follow which. */
export const UNFINISHED_STATES = ['waiting', 'ready', 'running'] as const
export const FINISHED_STATES = ['succeeded', 'failed', 'cancelled', 'skipped'] as const
export const RUN_STATES = [...UNFINISHED_STATES, ...FINISHED_STATES] as const
export type RunState = (typeof RUN_STATES)[number]

/** Which runs stay in the history once they have ended. */
export const KEEPS = ['all', 'failures', 'none'] as const
export type Keep = (typeof KEEPS)[number]

/** Who does the work: a job's handler, or a sink that the event is delivered to. */
export type Target = { readonly job: string } | { readonly sink: string; readonly options?: Json }

export const ORIGINS = ['tick', 'trigger', 'backfill', 'enqueue'] as const
export type Origin = (typeof ORIGINS)[number]

/** What a waiting run waits for: its key's name, an earlier run of its schedule, or the key itself. */
export const WAITS_FOR = ['stamp', 'overlap', 'key'] as const
export type WaitsFor = (typeof WAITS_FOR)[number]

export interface Run {
  /** Given by the store: opaque, unique, never used again. */
  readonly id: string
  readonly target: Target
  readonly origin: Origin
  readonly schedule?: string
  /** The nominal instant: of the tick, or when the trigger was pulled. */
  readonly tick?: number
  /** Names the backfill, so that a repeated request cannot double it. */
  readonly backfill?: string
  readonly payload: Json
  readonly priority: number
  readonly keep: Keep
  readonly key?: RunKey
  /** Dedupes enqueues of a job. */
  readonly dedupe?: string

  readonly state: RunState
  readonly waitsFor?: WaitsFor
  readonly reason?: SkipReason
  readonly createdAt: number
  /** When it may start, or start again. */
  readonly readyAt: number
  /** When it is too late to start for the first time. */
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

/** A run that is to be: the store adds id, state and times. */
export interface NewRun {
  readonly target: Target
  readonly origin: Origin
  readonly schedule?: string
  readonly tick?: number
  readonly backfill?: string
  readonly payload: Json
  readonly priority: number
  readonly keep: Keep
  /** When it may start: an instant, or a delay by the store's clock; now when absent. */
  readonly readyAt?: number
  readonly delayMs?: number
  readonly key?: RunKey | 'unstamped'
  /** Refuse the run while as many runs as the key's limit are due or executing. */
  readonly checkKey?: boolean
  readonly dedupe?: string
  /** How long the dedupe key goes on refusing after the run has ended. */
  readonly dedupeForMs?: number
  /** For runs of a schedule: whether to mind its unfinished runs. `allow` when absent. */
  readonly overlap?: Overlap
}

/** How an attempt ended. */
export type Outcome =
  | { readonly kind: 'succeeded'; readonly result?: Json }
  /** For good. Counts as a failure. */
  | { readonly kind: 'failed'; readonly error: ErrorRecord }
  /** Failed, and is tried again after a delay. Counts as a failure. */
  | { readonly kind: 'retry'; readonly error: ErrorRecord; readonly delayMs: number }
  /** Given back unfinished by an instance that stops. Counts as nothing. */
  | { readonly kind: 'released' }
  | { readonly kind: 'cancelled'; readonly error?: ErrorRecord }

/** A run that ended before it began was never claimed. */
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
