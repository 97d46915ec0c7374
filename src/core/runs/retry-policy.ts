import type { Duration } from '../../time/duration.js'
import { LIMITS } from '../defaults.js'
import { isFinal } from '../errors.js'
import { jitterMs, unitHash } from '../schedules/jitter.js'

export const BACKOFFS = ['fixed', 'exponential'] as const

/** The `retry` option of jobs and sinks. */
export interface RetryOptions {
  /** Attempts in all, the first included. Default 3; 25 for sinks. */
  readonly attempts?: number
  /** Default exponential. A function gets the number of failed attempts and the error. */
  readonly backoff?: (typeof BACKOFFS)[number] | ((failures: number, error: unknown) => Duration)
  /** The first delay. Default 1 s. */
  readonly delay?: Duration
  /** The longest delay of exponential backoff. Default a day; an hour for sinks. */
  readonly maxDelay?: Duration
}

export interface RetryPolicy {
  readonly attempts: number
  /** The delay before the next attempt, given how many have failed and the last error. */
  readonly delayMs: (failures: number, error: unknown) => number
}

export function fixedBackoff(delayMs: number): RetryPolicy['delayMs'] {
  return () => delayMs
}

/** 1 s, 2 s, 4 s, …: doubles from the first delay up to a day. */
export function exponentialBackoff(firstMs: number, maxMs = LIMITS.backoffMs): RetryPolicy['delayMs'] {
  return (failures) => Math.min(firstMs * 2 ** Math.min(failures - 1, 40), maxMs)
}

/** Varies a delay by ±10 %, so that runs that failed together are not retried together. */
export function spread(delayMs: number, run: string, failures: number): number {
  return Math.round(delayMs * (0.9 + 0.2 * unitHash(`${run}#${failures}`)))
}

/** 50 % to 100 % of a delay, so that the loops of several instances do not run in step. */
export function desynchronise(delayMs: number, seed: string, round: number): number {
  return Math.ceil(delayMs / 2) + jitterMs(delayMs / 2, seed, round)
}

export type RetryDecision = { readonly retry: false } | { readonly retry: true; readonly delayMs: number }

/** Whether a failed attempt is followed by another. `failures` counts this one too. */
export function decideRetry(policy: RetryPolicy, run: string, failures: number, error: unknown): RetryDecision {
  if (failures >= policy.attempts || isFinal(error)) return { retry: false }
  const delayMs = delayOf(policy, failures, error)
  if (delayMs === undefined) return { retry: false }
  return { retry: true, delayMs: spread(Math.min(delayMs, LIMITS.backoffMs), run, failures) }
}

/** Undefined when the user's backoff function throws or returns no duration: the run then fails with the handler's error. */
function delayOf(policy: RetryPolicy, failures: number, error: unknown): number | undefined {
  try {
    const delayMs = policy.delayMs(failures, error)
    return Number.isFinite(delayMs) && delayMs >= 0 ? delayMs : undefined
  } catch {
    return undefined
  }
}
