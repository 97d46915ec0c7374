/**
 * Everything that runs in this process: claimed, at work, and not yet settled. Those who start runs share it, so that the
 * keeper has one list to beat with.
 *
 * - A claim whose reply was lost: the runs are ours in the store and unknown here. Claims are numbered, and the beat
 *   says up to which number all were answered: the store then gives back what we do not list.
 * - A claim that is answered after this instance was given up for dead: the runs were its former life's, and somebody
 *   may be at work on them by now. They are not begun.
 */
import type { Clock } from '../../core/clock.js'
import type { Outcome } from '../../core/run.js'
import type { ClaimedRun, ClaimRequest, ClaimResult, Store } from '../../core/store.js'
import type { TokenFloor } from '../../core/token.js'
import type { Events } from '../events.js'
import { Attempt } from './attempt.js'
import type { Settler } from './settler.js'
import { ABORT_WINDOW_MS } from './worker.js'

export interface AttemptsOptions {
  readonly store: Store
  readonly clock: Clock
  readonly events: Events
  readonly settler: Settler
  readonly floor: TokenFloor
  /** The id under which this process takes part now. */
  readonly instance: () => string
}

export type ClaimWish = Pick<ClaimRequest, 'limit' | 'jobs' | 'sinks'>

export class Attempts {
  readonly #options: AttemptsOptions
  readonly #all = new Map<string, Attempt>()
  #claim = 0
  /** The claims that are under way, in the order of their numbers. */
  readonly #claiming = new Set<number>()
  #whenIdle: (() => void)[] = []

  constructor(options: AttemptsOptions) {
    this.#options = options
  }

  get all(): ReadonlyMap<string, Attempt> {
    return this.#all
  }

  /** The id under which this process takes part now. */
  get instance(): string {
    return this.#options.instance()
  }

  /** Every claim up to this number was answered, or has failed. */
  get claimsSettled(): number {
    for (const oldest of this.#claiming) return oldest - 1
    return this.#claim
  }

  /** Resolves when nothing runs here any more. */
  idle(): Promise<void> {
    if (this.#all.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /**
   * Claims what is wished for, and begins it. The claim counts as answered only once its runs are listed: a beat in between
   * would give them back.
   */
  async claim(wish: ClaimWish, begin: (attempt: Attempt) => void): Promise<ClaimResult> {
    const { store, instance, floor } = this.#options
    this.#claim += 1
    const claim = this.#claim
    this.#claiming.add(claim)
    try {
      const id = instance()
      const result = await store.runs.claim({ instance: id, claim, floor: floor.value, ...wish })
      floor.sawTime(result.now)
      if (id === instance()) for (const run of result.runs) begin(this.#begin(run))
      return result
    } finally {
      this.#claiming.delete(claim)
    }
  }

  #begin(run: ClaimedRun): Attempt {
    const { floor, clock, events } = this.#options
    floor.sawToken(run.token)
    // An earlier attempt that is still at work here has lost the run: nobody else knows of it, so it is told now.
    this.#all.get(run.id)?.abort('lost', ABORT_WINDOW_MS)
    const attempt = new Attempt(run, clock)
    this.#all.set(run.id, attempt)
    events.emit('run:started', { run })
    return attempt
  }

  /** Writes down how an attempt ended; undefined when there is nothing of ours to write. Then its slot is free. */
  settle(attempt: Attempt, outcome: Outcome | undefined, free: () => void): void {
    if (outcome === undefined) {
      this.#finish(attempt, undefined, free)
      return
    }
    const { id, token } = attempt.run
    this.#options.settler.settle({ run: id, token, outcome }, (result) => {
      this.#finish(attempt, result === 'stale' ? undefined : outcome, free)
    })
  }

  /** Tells observers and frees the slot: only now, when the outcome is written, or refused as stale. */
  #finish(attempt: Attempt, written: Outcome | undefined, free: () => void): void {
    const { id } = attempt.run
    if (this.#all.get(id) === attempt) this.#all.delete(id)
    tell(this.#options.events, attempt, written)
    free()
    if (this.#all.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
  }
}

function tell(events: Events, attempt: Attempt, outcome: Outcome | undefined): void {
  const { run } = attempt
  const durationMs = attempt.durationMs()
  if (outcome === undefined) events.emit('run:stale', { run })
  else if (outcome.kind === 'succeeded') {
    events.emit('run:succeeded', { run, durationMs, result: outcome.result ?? null })
  } else if (outcome.kind === 'failed') events.emit('run:failed', { run, durationMs, error: outcome.error })
  else if (outcome.kind === 'retry') {
    events.emit('run:retrying', { run, durationMs, error: outcome.error, delayMs: outcome.delayMs })
  } else events.emit(outcome.kind === 'cancelled' ? 'run:cancelled' : 'run:released', { run, durationMs })
}
