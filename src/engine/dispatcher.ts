/**
 * The dispatcher starts runs: it claims as many as can begin at once, never more, so that no claimed run waits in the
 * memory of a process that others cannot see into.
 *
 * - Crash before the claim: nothing happened. Crash after it: the beat stops, and the sweepers of others take over.
 * - A claim whose reply was lost: the runs are ours in the store and unknown here. Claims are numbered, and the beat
 *   says up to which number all were answered: the store then gives back what we do not list.
 * - A claim that is answered after this instance was given up for dead: the runs were its former life's, and somebody
 *   may be at work on them by now. They are not begun.
 * - Raced by another: the store gives each run to one of us.
 */
import type { Clock } from '../core/clock.js'
import { errorRecord } from '../core/errors.js'
import type { Logger } from '../core/logger.js'
import type { Outcome } from '../core/run.js'
import type { Capacity, ClaimedRun, ClaimResult, Store } from '../core/store.js'
import type { TokenFloor } from '../core/token.js'
import { Attempt } from './attempt.js'
import { deliver } from './deliver.js'
import type { Events } from './events.js'
import type { Rush } from './rush.js'
import type { Settler } from './settler.js'
import type { JobDefinition, SinkDefinition } from './work.js'
import { ABORT_WINDOW_MS, runAttempt } from './worker.js'

export interface DispatcherOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
  readonly settler: Settler
  readonly rush: Rush
  readonly floor: TokenFloor
  readonly jobs: ReadonlyMap<string, JobDefinition>
  readonly sinks: ReadonlyMap<string, SinkDefinition>
  readonly concurrency: number
  /** How many runs one claim takes at the most. */
  readonly batch: number
  readonly pollMs: number
  /** The id under which this process takes part now. */
  readonly instance: () => string
  /** Told when a slot becomes free. */
  readonly onFree: () => void
}

/**
 * Runs of one claim start together, when all of it is written. So the first claims are small, for those who are on time,
 * and only where these do not reach are they as large as makes them cheap.
 */
const SMALL = 250
const SMALL_CLAIMS = 4

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #attempts = new Map<string, Attempt>()
  /** Attempts of each job and sink, for their own limits. */
  readonly #busy = new Map<string, number>()
  #claim = 0
  #claiming = false
  /** How many claims in a row took all that they could. */
  #full = 0
  #closed = false
  #whenIdle: (() => void)[] = []

  constructor(options: DispatcherOptions) {
    this.#options = options
  }

  /** One step of the loop. */
  async startRuns(): Promise<number> {
    const most = this.#full < SMALL_CLAIMS ? Math.min(SMALL, this.#options.batch) : this.#options.batch
    const limit = Math.min(this.#options.concurrency - this.#attempts.size, most)
    if (limit <= 0 || this.#closed) return this.#options.pollMs
    const jobs = this.#capacities(this.#options.jobs, 'job:', limit)
    const sinks = this.#capacities(this.#options.sinks, 'sink:', limit)
    if (jobs.length === 0 && sinks.length === 0) return this.#options.pollMs
    const result = await this.#claimRuns(limit, jobs, sinks)
    const isFull = result.runs.length >= limit
    this.#full = isFull ? this.#full + 1 : 0
    const { rush, concurrency } = this.#options
    if (!isFull || this.#closed) rush.end()
    else if (this.#attempts.size < concurrency) rush.begin()
    else rush.giveWay()
    return isFull ? 0 : Math.min(this.#options.pollMs, untilReady(result))
  }

  get attempts(): ReadonlyMap<string, Attempt> {
    return this.#attempts
  }

  /** Every claim up to this number was answered, or has failed. */
  get claimsSettled(): number {
    return this.#claiming ? this.#claim - 1 : this.#claim
  }

  /** Claims no more. */
  close(): void {
    this.#closed = true
    this.#options.rush.end()
  }

  /** Resolves when nothing runs here any more. */
  idle(): Promise<void> {
    if (this.#attempts.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /** The claim counts as answered only once its runs are listed: a beat in between would give them back. */
  async #claimRuns(limit: number, jobs: Capacity[], sinks: Capacity[]): Promise<ClaimResult> {
    const { store, instance, floor } = this.#options
    this.#claim += 1
    this.#claiming = true
    try {
      const id = instance()
      const request = { instance: id, claim: this.#claim, limit, jobs, sinks, floor: floor.value }
      const result = await store.runs.claim(request)
      floor.sawTime(result.now)
      if (id === instance()) this.#begin(result.runs)
      return result
    } finally {
      this.#claiming = false
    }
  }

  #capacities(work: ReadonlyMap<string, { concurrency: number }>, prefix: string, limit: number): Capacity[] {
    const capacities: Capacity[] = []
    for (const [name, { concurrency }] of work) {
      const free = Math.min(limit, concurrency - (this.#busy.get(prefix + name) ?? 0))
      if (free > 0) capacities.push({ name, limit: free })
    }
    return capacities
  }

  /** Only what this instance offered to run can be among them. */
  #begin(runs: readonly ClaimedRun[]): void {
    const deliveries = new Map<SinkDefinition, Attempt[]>()
    for (const run of runs) {
      this.#options.floor.sawToken(run.token)
      // An earlier attempt that is still at work here has lost the run: nobody else knows of it, so it is told now.
      this.#attempts.get(run.id)?.abort('lost', ABORT_WINDOW_MS)
      const attempt = new Attempt(run, this.#options.clock)
      this.#attempts.set(run.id, attempt)
      this.#count(attempt, 1)
      this.#options.events.emit('run:started', { run })
      if ('job' in run.target) void this.#runJob(attempt, this.#options.jobs.get(run.target.job) as JobDefinition)
      else group(deliveries, this.#options.sinks.get(run.target.sink) as SinkDefinition, attempt)
    }
    for (const [sink, attempts] of deliveries) void this.#deliver(sink, attempts)
  }

  async #runJob(attempt: Attempt, job: JobDefinition): Promise<void> {
    const { store, log } = this.#options
    this.#settle(attempt, await runAttempt(attempt, job, store.runs, log).catch(unforeseen))
  }

  async #deliver(sink: SinkDefinition, attempts: readonly Attempt[]): Promise<void> {
    const outcomes = await deliver(sink, attempts).catch((error: unknown) => attempts.map(() => unforeseen(error)))
    for (const [at, attempt] of attempts.entries()) this.#settle(attempt, outcomes[at])
  }

  #settle(attempt: Attempt, outcome: Outcome | undefined): void {
    const { id, token } = attempt.run
    if (outcome === undefined) this.#finish(attempt, undefined)
    else {
      this.#options.settler.settle({ run: id, token, outcome }, (result) => {
        this.#finish(attempt, result === 'stale' ? undefined : outcome)
      })
    }
  }

  /** Tells observers and frees the slot: only now, when the outcome is written, or refused as stale. */
  #finish(attempt: Attempt, written: Outcome | undefined): void {
    const { id } = attempt.run
    if (this.#attempts.get(id) === attempt) this.#attempts.delete(id)
    this.#count(attempt, -1)
    this.#tell(attempt, written)
    this.#options.onFree()
    if (this.#attempts.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #count({ run: { target } }: Attempt, change: number): void {
    const name = 'job' in target ? `job:${target.job}` : `sink:${target.sink}`
    this.#busy.set(name, (this.#busy.get(name) ?? 0) + change)
  }

  #tell(attempt: Attempt, outcome: Outcome | undefined): void {
    const { events } = this.#options
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
}

/** Nothing that a handler or a sink does should come to this; if something does, the run ends instead of hanging. */
function unforeseen(error: unknown): Outcome {
  return { kind: 'failed', error: errorRecord(error) }
}

function group(deliveries: Map<SinkDefinition, Attempt[]>, sink: SinkDefinition, attempt: Attempt): void {
  const attempts = deliveries.get(sink)
  if (attempts === undefined) deliveries.set(sink, [attempt])
  else attempts.push(attempt)
}

function untilReady({ now, nextReadyAt }: ClaimResult): number {
  return nextReadyAt === undefined ? Number.POSITIVE_INFINITY : Math.max(nextReadyAt - now, 1)
}
