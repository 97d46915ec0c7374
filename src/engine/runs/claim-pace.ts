/**
 * How many runs of a job one claim takes, by how long the starts of its last claim held the event loop. Handlers that
 * work without waiting run one after the other, whatever the concurrency: a process that took ten of them at once would
 * keep nine from an idle process.
 *
 * A job begins with one run. While its claims leave the loop free, each takes four times as many as the one before, soon
 * without a limit; after a claim that held the loop, as many as fit into the time that a claim may hold it.
 */
import type { Clock } from '../../core/clock.js'
import type { Capacity, ClaimedRun } from '../../core/store.js'

/** How long the starts of one claim may hold the event loop. */
const HOLD_MS = 200
const GROWTH = 4
const ENOUGH = 1_000

/** How many runs of a job the next claim may take. */
export interface ClaimPace {
  most(job: string): number
  /** Whether its handlers have left the loop free for so long that any number is claimed at once. */
  isLight(job: string): boolean
  /** A claim asks for these jobs. */
  asked(jobs: readonly Capacity[]): void
  /** The claim was answered, and its runs were started at this instant. */
  answered(jobs: readonly Capacity[], runs: readonly ClaimedRun[], startedAt: number): void
}

/** For handlers that cannot block the loop: those in threads, and all where time is turned by hand. */
export const UNPACED: ClaimPace = {
  most: () => Number.POSITIVE_INFINITY,
  isLight: () => true,
  asked() {},
  answered() {},
}

export interface PaceOptions {
  readonly clock: Clock
  /** Whether the event loop is late. Then each claim takes one run of a job: an idle instance starts the others sooner. */
  readonly isLoopBusy: () => boolean
  /** Called when a job that was being judged may be claimed again. */
  readonly onFree: () => void
}

export class Pace implements ClaimPace {
  readonly #options: PaceOptions
  /** How many runs of a job one claim takes. */
  readonly #most = new Map<string, number>()
  /** Jobs whose last claim has not been judged yet. */
  readonly #judging = new Set<string>()

  constructor(options: PaceOptions) {
    this.#options = options
  }

  most(job: string): number {
    if (this.#judging.has(job)) return 0
    return this.#options.isLoopBusy() ? 1 : (this.#most.get(job) ?? 1)
  }

  isLight(job: string): boolean {
    return this.#most.get(job) === Number.POSITIVE_INFINITY
  }

  /** A job whose pace is limited is asked for by one claim at a time. */
  asked(jobs: readonly Capacity[]): void {
    for (const { name } of jobs) if (Number.isFinite(this.most(name))) this.#judging.add(name)
  }

  answered(jobs: readonly Capacity[], runs: readonly ClaimedRun[], startedAt: number): void {
    const begun = new Set(runs.map(({ target }) => ('job' in target ? target.job : undefined)))
    for (const { name } of jobs) if (!begun.has(name)) this.#judging.delete(name)
    if (runs.length === 0) return
    const { clock } = this.#options
    clock.nextTurn?.(() => this.#judge([...begun], runs.length, clock.monotonic() - startedAt))
  }

  #judge(jobs: readonly (string | undefined)[], count: number, heldMs: number): void {
    let isFree = false
    for (const job of jobs) {
      if (job === undefined) continue
      this.#most.set(job, nextMost(this.#most.get(job) ?? 1, count, heldMs))
      isFree = this.#judging.delete(job) || isFree
    }
    if (isFree) this.#options.onFree()
  }
}

function nextMost(most: number, count: number, heldMs: number): number {
  if (heldMs > HOLD_MS) return Math.max(Math.floor((count * HOLD_MS) / heldMs), 1)
  return most * GROWTH > ENOUGH ? Number.POSITIVE_INFINITY : most * GROWTH
}
