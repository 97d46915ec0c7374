import { checkOptions } from '../../core/checks/known-options.js'
import { type Clock, sleep } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import { checkText } from '../../core/names/names.js'
import { isFinished, RUN_STATES, type Run, type RunState, WAITS_FOR, type WaitsFor } from '../../core/runs/run.js'
import type { CancelResult, CountQuery, Page, RunQuery, Store } from '../../core/store.js'
import { type Duration, durationMs } from '../../time/duration.js'
import { type Instant, instantMs } from '../../time/instant.js'
import type { RunId } from '../jobs/enqueue.js'
import { isLook, listQuery } from '../list-query.js'
import { located } from '../located.js'
import { CANCELLABLE, changeMany, chosenRuns, type ManyRuns, type ManyRunsResult, RETRYABLE } from './change-many.js'
import { type RunEvent, RunFeed } from './run-feed.js'

const FIRST_LOOK_MS = 20
const LOOK_MS = 1_000

const FILTERS = ['after', 'prefix', 'schedule', 'tick', 'job', 'to', 'key', 'state', 'waitsFor', 'look'] as const
const isState = (state: unknown) => RUN_STATES.includes(state as RunState)
const CHECKS = {
  look: isLook,
  /** `instantMs` checks the tick later. */
  tick: () => true,
  state: (state: unknown) => (Array.isArray(state) ? state.length > 0 && state.every(isState) : isState(state)),
  waitsFor: (waitsFor: unknown) => WAITS_FOR.includes(waitsFor as WaitsFor),
}

/** Which runs are meant. `state` is one state or several. */
export type RunFilter = Partial<Omit<RunQuery, 'tick' | 'states' | 'sink'>> & {
  /** The sink that delivers them. */
  readonly to?: string
  readonly tick?: Instant
  readonly state?: RunState | readonly RunState[]
}

/** A run whose job is known. `result` is set when it has succeeded; it has been JSON, so a Date is text. */
export type RunOf<Result> = unknown extends Result ? Run : Omit<Run, 'result'> & { readonly result?: Result }

export class Runs {
  readonly #store: Store
  readonly #clock: Clock
  readonly #ending: AbortSignal
  readonly #feed: RunFeed

  constructor(store: Store, clock: Clock, ending: AbortSignal) {
    this.#store = store
    this.#clock = clock
    this.#ending = ending
    this.#feed = new RunFeed(store, clock)
  }

  async get(id: string): Promise<Run | undefined> {
    return this.#store.runs.get(checkText(id, 'run id'))
  }

  /** Newest first. */
  async list(query: RunFilter = {}): Promise<Page<Run>> {
    return this.#store.runs.list(this.#many(query, 'runs.list()'))
  }

  /**
   * How many unfinished runs belong to a prefix: to schedules whose ids begin with it and, without a schedule, to such jobs
   * and sinks. Counting stops at the limit.
   */
  async count(query: CountQuery): Promise<number> {
    return this.#store.runs.count(query)
  }

  /** Cancels a run that has not started; asks a running one to end. */
  async cancel(id: string): Promise<Exclude<CancelResult, 'missing'>> {
    const result = await this.#store.runs.cancel(checkText(id, 'run id'))
    if (result === 'missing') throw missing(id)
    return result
  }

  /** Makes a failed, cancelled or skipped run ready again, with its full number of attempts. */
  async retry(id: string): Promise<void> {
    const result = await this.#store.runs.retry(checkText(id, 'run id'))
    if (result === 'missing') throw missing(id)
    if (result === 'refused') {
      const state = (await this.#store.runs.get(id))?.state
      throw failure(
        'TRANSITION_REFUSED',
        `run ${id} is ${state}: only failed, cancelled and skipped runs can be retried`,
      )
    }
  }

  /**
   * Cancels the newest runs that match and have not ended, up to a limit of 1,000; `all: true` matches every run. `isMeant`
   * can exclude some. Runs that are created meanwhile are not included.
   */
  async cancelMany(query: ManyRuns, isMeant: (run: Run) => boolean = () => true): Promise<ManyRunsResult> {
    const where = 'runs.cancelMany()'
    return changeMany(this.#store, this.#chosen(query, where), CANCELLABLE, where, isMeant, (id) =>
      this.#store.runs.cancel(id),
    )
  }

  /**
   * Retries the newest runs that match and failed, were cancelled or skipped, up to a limit of 1,000; `all: true` matches every
   * run.
   */
  async retryMany(query: ManyRuns, isMeant: (run: Run) => boolean = () => true): Promise<ManyRunsResult> {
    const where = 'runs.retryMany()'
    return changeMany(this.#store, this.#chosen(query, where), RETRYABLE, where, isMeant, (id) =>
      this.#store.runs.retry(id),
    )
  }

  #chosen(query: ManyRuns, where: string): RunQuery {
    checkOptions(query, [...FILTERS, 'limit', 'all'], where)
    return this.#many(chosenRuns(query, where), where)
  }

  #many(query: RunFilter, where: string): RunQuery {
    const { state, tick, to, ...rest } = listQuery(query, FILTERS, where, CHECKS)
    return {
      ...rest,
      ...(to === undefined ? {} : { sink: to }),
      ...(tick === undefined ? {} : { tick: located(where, () => instantMs(tick)) }),
      ...(state === undefined ? {} : { states: [state].flat() }),
    }
  }

  /**
   * Reports new and changed runs of all processes within about a second. The feed reads the store, so it may miss
   * states in between; `gap` means that some changes were not reported. Resolves when the watch has begun.
   */
  watch(listener: (event: RunEvent) => void): Promise<() => void> {
    return this.#feed.watch(listener)
  }

  /** The runs that changed since an instant, oldest first; undefined when they are too many. */
  changedSince(at: Instant): Promise<readonly Run[] | undefined> {
    return this.#feed.since(instantMs(at))
  }

  /**
   * Resolves when the run has ended. Undefined when the store has no such run: it never existed, or it ended and its job
   * keeps no history.
   */
  async wait<Result = unknown>(
    id: RunId<Result>,
    options: { readonly timeout?: Duration; readonly signal?: AbortSignal } = {},
  ): Promise<RunOf<Result> | undefined> {
    const where = `wait for run ${checkText(id, 'run id')}`
    checkOptions(options, ['timeout', 'signal'], where)
    const { timeout, signal } = options
    const waitMs = timeout === undefined ? Number.POSITIVE_INFINITY : located(where, () => durationMs(timeout))
    const until = this.#clock.monotonic() + waitMs
    let hint = new AbortController()
    const wake = () => hint.abort()
    const unsubscribe = this.#store.subscribe((hinted) => {
      if (hinted === 'settled') wake()
    })
    this.#ending.addEventListener('abort', wake)
    signal?.addEventListener('abort', wake)
    try {
      for (let lookMs = FIRST_LOOK_MS; ; lookMs = Math.min(lookMs * 2, LOOK_MS)) {
        if (this.#ending.aborted) throw failure('NOT_RUNNING', `run ${id} was waited for when the instance was stopped`)
        signal?.throwIfAborted()
        const run = await this.#store.runs.get(id)
        if (run === undefined || isFinished(run)) return run as RunOf<Result> | undefined
        const leftMs = until - this.#clock.monotonic()
        if (leftMs <= 0) throw failure('WAIT_TIMEOUT', `run ${id} is still ${run.state} after ${String(timeout)}`)
        await sleep(this.#clock, Math.min(lookMs, leftMs), hint.signal)
        hint = new AbortController()
      }
    } finally {
      this.#ending.removeEventListener('abort', wake)
      signal?.removeEventListener('abort', wake)
      unsubscribe()
    }
  }
}

function missing(id: string) {
  return failure('RUN_NOT_FOUND', `there is no run "${id}": it never was, or its history is gone`)
}
