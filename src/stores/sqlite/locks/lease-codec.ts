import type { Lease } from '../../../core/locks/lease.js'
import { runId } from '../../../core/runs/run-id.js'

/** A row of the view `belfry_holders`. */
export type LeaseRow = {
  readonly name: string
  readonly holder: string
  readonly token: number
  /** Set for a run's key. */
  readonly run: number | null
  readonly run_mark: string | null
  readonly instance: string | null
  readonly acquired_at: number
  readonly expires_at: number
  /** 1 when the holder released it before its minimum hold was over. */
  readonly released: number
}

export function toLease({
  name,
  holder,
  token,
  acquired_at,
  expires_at,
  instance,
  run,
  run_mark,
  released,
}: LeaseRow): Lease {
  return {
    ...{ name, holder, token, acquiredAt: acquired_at, expiresAt: expires_at },
    ...(instance === null ? {} : { instance }),
    ...(run === null || run_mark === null ? {} : { run: runId(run, run_mark) }),
    ...(released === 1 ? { released: true as const } : {}),
  }
}
