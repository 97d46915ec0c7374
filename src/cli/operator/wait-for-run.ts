import { setTimeout as pause } from 'node:timers/promises'
import type { BelfryClient, RunResource } from '../../client/index.js'
import { failure } from '../../core/errors.js'
import { isFinished } from '../../core/runs/run.js'
import { durationMs } from '../../time/duration.js'

/** The longest wait of one request. */
export const ONE_WAIT_MS = 30_000
const POLL_MS = 500

export function hasEnded(run: RunResource): boolean {
  return isFinished(run)
}

/** A duration, or "forever". */
export function waitMs(given: string | true): number {
  return given === true || given === 'forever' ? Number.POSITIVE_INFINITY : durationMs(given)
}

/** Polls until the run ends. Resolves to null if the store keeps no history of the run. */
export async function waitForRun(client: BelfryClient, id: string, untilMs: number): Promise<RunResource | null> {
  for (;;) {
    const run = await client.runs.get(id)
    if (run === undefined || hasEnded(run)) return run ?? null
    if (performance.now() >= untilMs) {
      throw failure('WAIT_TIMEOUT', `run ${id} is still ${run.state}: belfry run ${id} shows its progress`)
    }
    await pause(Math.min(POLL_MS, Math.max(untilMs - performance.now(), 1)))
  }
}
