import { checkOptions } from '../../core/checks/known-options.js'
import { DEFAULTS, LIMITS } from '../../core/defaults.js'
import { failure } from '../../core/errors.js'
import { checkName } from '../../core/names/names.js'
import { checkHeartbeat } from '../../engine/instances/keeper.js'
import { type Duration, durationMs } from '../../time/duration.js'
import { located } from '../located.js'
import { Lock } from './lock.js'

export interface LockOptions {
  /** How long the lease lasts without renewal. Default 15 s. */
  readonly ttl?: Duration
  /** How long to wait for the lock. Default not at all. */
  readonly wait?: Duration
  /** How many holders the lock has at a time. All users of the name give the same number. Default 1. */
  readonly permits?: number
  /** No other holder gets the lock until this long after its acquisition, even if it is released sooner. */
  readonly minHold?: Duration
  /** Enters this held lock again, with the same token. Each acquisition needs its own release. */
  readonly holder?: Lock
  /** What the holder calls itself, for people who look at the lock. Host and process id are added. */
  readonly as?: string
  /** Whether Belfry renews the lease until its release. Default true. */
  readonly renew?: boolean
  /** Renew this often. Default a quarter of the TTL; more than a third is refused. */
  readonly heartbeat?: Duration
  /** With `renew: false`: how long the work may take. Longer than the TTL is refused. */
  readonly timeout?: Duration
}

const KNOWN = ['ttl', 'wait', 'permits', 'minHold', 'holder', 'as', 'renew', 'heartbeat', 'timeout']

export type LockTerms = ReturnType<typeof parse>

export function parseLockOptions(name: string, options?: LockOptions): LockTerms {
  if (options === undefined) return DEFAULT_TERMS
  checkOptions(options, KNOWN, () => `lock "${name}"`)
  return located(`lock "${name}"`, () => parse(name, options))
}

function parse(name: string, options: LockOptions) {
  const { ttl, wait, permits = DEFAULTS.lock.permits, minHold, holder, as, renew = true, heartbeat, timeout } = options
  const ttlMs = ttl === undefined ? DEFAULTS.lock.ttlMs : checkTtl(name, durationMs(ttl))
  if (!Number.isInteger(permits) || permits < 1 || permits > LIMITS.permits) {
    throw invalid(name, `permits is ${String(permits)}; it must be a whole number from 1 to ${LIMITS.permits}`)
  }
  if (holder !== undefined && !(holder instanceof Lock))
    throw invalid(name, 'holder must be a lock that lock() gave you')
  const heartbeatMs = heartbeat === undefined ? undefined : durationMs(heartbeat)
  if (heartbeatMs !== undefined) checkHeartbeat(heartbeatMs, ttlMs, `lock "${name}"`)
  if (!renew && heartbeat !== undefined) throw invalid(name, 'heartbeat says nothing with renew: false: remove one')
  if (renew && timeout !== undefined) {
    throw invalid(name, 'timeout belongs to renew: false; a lock that renews itself lasts as long as the work')
  }
  if (timeout !== undefined && durationMs(timeout) > ttlMs) {
    throw invalid(
      name,
      `it is not renewed, and its timeout is longer than its ttl of ${ttlMs} ms: the lease would run out during the work`,
    )
  }
  return {
    ttlMs,
    permits,
    as: as === undefined ? undefined : checkName(as, `lock "${name}": as`),
    renew,
    heartbeatMs,
    waitMs: wait === undefined ? DEFAULTS.lock.waitMs : durationMs(wait),
    minHoldMs: minHold === undefined ? 0 : durationMs(minHold),
  }
}

const DEFAULT_TERMS = parse('', {})

export function checkTtl(name: string, ttlMs: number): number {
  if (ttlMs >= 1) return ttlMs
  throw invalid(name, 'ttl must be longer than 0')
}

function invalid(name: string, problem: string) {
  return failure('OPTION_INVALID', `lock "${name}": ${problem}`)
}
