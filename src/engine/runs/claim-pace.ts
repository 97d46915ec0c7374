/**
 * Limits how many runs of a job one claim takes, by how long the starts of its last claim blocked the event loop.
 * Handlers that compute without awaiting run one after another, whatever the concurrency. A process that claimed ten
 * such runs at once would keep nine of them from idle processes (docs/cpu-bound-jobs.md).
 *
 * A job begins with one run per claim. While its claims leave the loop free, each takes four times as many runs as the
 * one before, and above a thousand there is no limit. After a claim that blocked the loop for longer than `HOLD_MS`,
 * the next takes as many runs as fit into `HOLD_MS`. Example: claims of 1, 4 and 16 runs leave the loop free; the claim
 * of 64 blocks it for 800 ms; the next takes 16.
 */
import type { Clock } from '../../core/clock.js'
import type { Capacity, ClaimedRun } from '../../core/store.js'

/** How long the starts of one claim may block the event loop. */
const HOLD_MS = 200
const GROWTH = 4
/** A claim of more runs than this is not limited. */
const ENOUGH = 1_000

export interface ClaimPace {
  /** How many runs of a job the next claim may take. */
  most(job: string): number
  isUnlimited(job: string): boolean
  /** A claim for these jobs is sent. */
  asked(jobs: readonly Capacity[]): void
  /** The claim was answered, and the first of its runs was started at `startedAt`. */
  answered(jobs: readonly Capacity[], runs: readonly ClaimedRun[], startedAt: number): void
}

/** For handlers in threads, which cannot block the main loop, and for manual clocks, which have no event loop. */
export const UNPACED: ClaimPace = {
  most: () => Number.POSITIVE_INFINITY,
  isUnlimited: () => true,
  asked() {},
  answered() {},
}

export interface LearningPaceOptions {
  readonly clock: Clock
  /** Whether the event loop is late. While it is, each claim takes one run of a job, and idle instances take the rest. */
  readonly isLoopBusy: () => boolean
  /** Called when a job may be claimed again after its claim was measured. */
  readonly onFree: () => void
}

export class LearningPace implements ClaimPace {
  readonly #options: LearningPaceOptions
  readonly #most = new Map<string, number>()
  /** Limited jobs whose last claim has not been measured yet. They are not claimed until it is. */
  readonly #measuring = new Set<string>()

  constructor(options: LearningPaceOptions) {
    this.#options = options
  }

  most(job: string): number {
    if (this.#measuring.has(job)) return 0
    return this.#options.isLoopBusy() ? 1 : (this.#most.get(job) ?? 1)
  }

  isUnlimited(job: string): boolean {
    return this.#most.get(job) === Number.POSITIVE_INFINITY
  }

  asked(jobs: readonly Capacity[]): void {
    for (const { name } of jobs) if (Number.isFinite(this.most(name))) this.#measuring.add(name)
  }

  answered(jobs: readonly Capacity[], runs: readonly ClaimedRun[], startedAt: number): void {
    const begun = new Set(runs.flatMap(({ target }) => ('job' in target ? [target.job] : [])))
    for (const { name } of jobs) if (!begun.has(name)) this.#measuring.delete(name)
    if (runs.length === 0) return
    const { clock } = this.#options
    clock.nextTurn?.(() => this.#learn([...begun], runs.length, clock.monotonic() - startedAt))
  }

  #learn(jobs: readonly string[], count: number, heldMs: number): void {
    let isFree = false
    for (const job of jobs) {
      this.#most.set(job, nextMost(this.#most.get(job) ?? 1, count, heldMs))
      isFree = this.#measuring.delete(job) || isFree
    }
    if (isFree) this.#options.onFree()
  }
}

function nextMost(most: number, count: number, heldMs: number): number {
  if (heldMs > HOLD_MS) return Math.max(Math.floor((count * HOLD_MS) / heldMs), 1)
  return most * GROWTH > ENOUGH ? Number.POSITIVE_INFINITY : most * GROWTH
}
