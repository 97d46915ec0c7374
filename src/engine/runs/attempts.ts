/**
 * The attempts of this process that are claimed and not yet settled. All dispatchers share the list, and each beat
 * sends it to the store.
 *
 * What a claim survives:
 * - The reply to a claim is lost: the store counts the runs as claimed by this instance, but this process does not have
 *   them. Claims are numbered, and the beat carries the number up to which all claims were answered. The store makes
 *   runs of those claims ready again if the beat does not list them.
 * - The reply arrives after the store declared this instance dead: another instance may have the runs by now, so this
 *   process does not begin them.
 */
import type { Clock } from '../../core/clock.js'
import type { TokenFloor } from '../../core/locks/token.js'
import type { Outcome, RunState } from '../../core/runs/run.js'
import type { ClaimedRun, ClaimRequest, ClaimResult, Store } from '../../core/store.js'
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
  readonly instance: () => string
}

export type ClaimLimits = Pick<ClaimRequest, 'limit' | 'jobs' | 'sinks'>

export class Attempts {
  readonly #options: AttemptsOptions
  readonly #all = new Map<string, Attempt>()
  #claim = 0
  /** The claims in flight, in the order of their numbers. */
  readonly #claiming = new Set<number>()
  #whenIdle: (() => void)[] = []

  constructor(options: AttemptsOptions) {
    this.#options = options
  }

  get all(): ReadonlyMap<string, Attempt> {
    return this.#all
  }

  get instance(): string {
    return this.#options.instance()
  }

  /** The number up to which every claim was answered or has failed. */
  get claimsSettled(): number {
    for (const oldest of this.#claiming) return oldest - 1
    return this.#claim
  }

  /** Resolves when every attempt is settled. */
  idle(): Promise<void> {
    if (this.#all.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /**
   * Claims runs and begins them. The claim counts as answered only when its runs are in the list: a beat in between
   * would make the store give them to others. Throws when a part of the store is damaged, after it has begun the runs of the others.
   */
  async claim(limits: ClaimLimits, begin: (attempt: Attempt) => void): Promise<ClaimResult> {
    const { store, instance, floor, events } = this.#options
    this.#claim += 1
    const claim = this.#claim
    this.#claiming.add(claim)
    try {
      const id = instance()
      const result = await store.runs.claim({ instance: id, claim, floor: floor.value, ...limits })
      floor.sawTime(result.now)
      for (const run of result.skipped) events.emit('run:skipped', { run, reason: run.reason })
      if (id === instance()) for (const run of result.runs) begin(this.#begin(run))
      if (result.damage !== undefined) throw result.damage
      return result
    } finally {
      this.#claiming.delete(claim)
    }
  }

  #begin(run: ClaimedRun): Attempt {
    const { floor, clock, events } = this.#options
    floor.sawToken(run.token)
    // A handler of an earlier attempt may still be running here. Its attempt has lost the run, and no beat will report
    // that, because the new attempt takes its place in the list.
    this.#all.get(run.id)?.abort('lost', ABORT_WINDOW_MS)
    const attempt = new Attempt(run, clock)
    this.#all.set(run.id, attempt)
    events.emit('run:started', { run })
    return attempt
  }

  /** Writes the outcome, then frees the attempt's slot. `undefined` means that the run was lost: nothing is written. */
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

  #finish(attempt: Attempt, written: Outcome | undefined, free: () => void): void {
    const { id } = attempt.run
    if (this.#all.get(id) === attempt) this.#all.delete(id)
    emitOutcome(this.#options.events, attempt, written)
    free()
    if (this.#all.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
  }
}

/** A run that is tried again is `waiting` instead if its key or its schedule is busy; only the store knows that. */
const STATE_AFTER = {
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  retry: 'ready',
  released: 'ready',
} as const satisfies Record<Outcome['kind'], RunState>

function emitOutcome(events: Events, attempt: Attempt, outcome: Outcome | undefined): void {
  if (outcome === undefined) {
    events.emit('run:stale', { run: attempt.run })
    return
  }
  const durationMs = attempt.durationMs()
  const run = { ...attempt.run, state: STATE_AFTER[outcome.kind] }
  if (outcome.kind === 'succeeded') events.emit('run:succeeded', { run, durationMs, result: outcome.result ?? null })
  else if (outcome.kind === 'failed') events.emit('run:failed', { run, durationMs, error: outcome.error })
  else if (outcome.kind === 'retry') {
    events.emit('run:retrying', { run, durationMs, error: outcome.error, delayMs: outcome.delayMs })
  } else events.emit(outcome.kind === 'cancelled' ? 'run:cancelled' : 'run:released', { run, durationMs })
}
