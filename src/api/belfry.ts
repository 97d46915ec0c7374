/** What `createBelfry` returns: the API over the parts that `src/belfry.ts` connects. */
import type { Json } from '../core/checks/json.js'
import { checkOptions } from '../core/checks/known-options.js'
import type { Check } from '../core/diagnosis.js'
import type { Instance } from '../core/instances/instance.js'
import { checkName, checkText } from '../core/names/names.js'
import type { Frozen, RecordStore, Store } from '../core/store.js'
import type { EventMap, EventName, Events } from '../engine/events.js'
import type { Metrics } from '../engine/metrics/metrics.js'
import { type Duration, durationMs } from '../time/duration.js'
import type { ParsedOptions } from './belfry-options.js'
import { doctor } from './health/doctor.js'
import { type Stats, stats } from './health/stats.js'
import { type EnqueueOptions, type EnqueueOutcome, newDelivery, newRun, type SinkChoice } from './jobs/enqueue.js'
import { Job } from './jobs/job.js'
import type { JobCatalogue } from './jobs/job-catalogue.js'
import { type JobOptions, parseJob } from './jobs/job-options.js'
import { type KnownJob, knownJobs } from './jobs/known-jobs.js'
import type { InputOf, OutputOf, StandardSchema } from './jobs/standard-schema.js'
import type { Lifecycle } from './lifecycle.js'
import { located } from './located.js'
import type { Lock } from './locks/lock.js'
import type { LockOptions } from './locks/lock-options.js'
import type { Locks } from './locks/locks.js'
import { withLock } from './locks/with-lock.js'
import type { Runs } from './runs/runs.js'
import type { Declarations } from './schedules/declarations.js'
import type { ScheduleInput } from './schedules/schedule-input.js'
import type { Schedules } from './schedules/schedules.js'
import { type UnreachableSink, unreachableSinks } from './sinks/unreachable-sinks.js'

/** What an instance is made of. */
export interface BelfryParts {
  readonly options: ParsedOptions
  readonly store: Store
  readonly events: Events
  readonly metrics: Metrics
  readonly lifecycle: Lifecycle
  readonly catalogue: JobCatalogue
  readonly declarations: Declarations
  readonly schedules: Schedules
  readonly runs: Runs
  readonly locks: Locks
  readonly instance: () => string
  readonly stuckParts: () => readonly string[]
}

export class Belfry<Tx = unknown> implements AsyncDisposable {
  readonly schedules: Schedules
  readonly runs: Runs
  readonly locks: Locks
  /** Small records that services keep in the store: tokens, an audit trail. */
  readonly records: RecordStore
  /** Counters and histograms, for a metrics page. */
  readonly metrics: Metrics
  readonly #parts: BelfryParts

  /** Use `createBelfry`. */
  constructor(parts: BelfryParts) {
    this.schedules = parts.schedules
    this.runs = parts.runs
    this.locks = parts.locks
    this.records = parts.store.records
    this.metrics = parts.metrics
    this.#parts = parts
  }

  /** The id of this instance. It changes when the store declares the instance dead and it rejoins. */
  get instance(): string {
    return this.#parts.instance()
  }

  /** Defines a job. Types flow from its schema to the handler and to `enqueue`. */
  job<Schema extends StandardSchema, Result = unknown>(
    name: string,
    options: JobOptions<OutputOf<Schema>, Result, Tx> & { readonly payload: Schema },
  ): Job<InputOf<Schema>, Result>
  job<Payload = Json, Result = unknown>(
    name: string,
    options: JobOptions<Payload, Result, Tx> & { readonly payload?: undefined },
  ): Job<null extends Payload ? Payload | undefined : Payload, Result>
  job(
    name: string,
    options: JobOptions<never, unknown, unknown, string> & { readonly payload?: StandardSchema | undefined },
  ): Job<never> {
    this.#parts.lifecycle.mustBeNew('job', 'define jobs before start()')
    const definition = parseJob(name, options)
    this.#parts.catalogue.add(definition)
    return new Job(definition, this.#parts.catalogue, this.#parts.store)
  }

  /** Declares a schedule in code, which is put when the instance starts. For other schedules use `schedules.put`. */
  schedule<Input = unknown>(id: string, input: ScheduleInput<Input>): void {
    this.#parts.lifecycle.mustBeNew('schedule', 'declare schedules before start(), or use schedules.put()')
    checkName(id, 'schedule id')
    this.#parts.declarations.add(id, input, this.schedule)
  }

  /** Opens the store, puts the declared schedules, and begins to record ticks and run jobs. */
  async start(): Promise<void> {
    await this.#parts.lifecycle.start()
  }

  /** Stops claiming, and gives running work its grace. Then aborts and releases the rest, and releases all locks. */
  async stop(options: { readonly grace?: Duration } = {}): Promise<void> {
    checkOptions(options, ['grace'], 'stop()')
    const { grace } = options
    const graceMs = grace === undefined ? undefined : located('stop(): grace', () => durationMs(grace))
    await this.#parts.lifecycle.stop(graceMs, this.#parts.options.stopGraceMs)
  }

  /** Acquires a lock; undefined when another holder has it. */
  lock(name: string, options?: LockOptions): Promise<Lock | undefined> {
    return this.locks.acquire(name, options)
  }

  /**
   * Runs `work` while holding a lock. Rejects with `LOCK_BUSY` when another holder has the lock, and with `LOCK_LOST`
   * when the lock was lost before `work` was done. The latter error carries the value of `work`.
   */
  withLock<T>(name: string, work: (lock: Lock) => T | Promise<T>, options?: LockOptions): Promise<T> {
    return withLock(this.locks, name, work, options)
  }

  /**
   * Makes a run of a job by the job's name, or of a sink: `enqueue({ to: 'orders' }, payload)` delivers one event. If this
   * instance does not have the job's code, the payload is not checked, and an instance that has the code computes the exclusive
   * key.
   */
  async enqueue(target: string | SinkChoice, payload?: unknown, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    const { catalogue } = this.#parts
    const run = isSink(target)
      ? await newDelivery(catalogue, target, payload, options)
      : await newRun(catalogue, checkName(target, 'job name'), payload, options)
    const { tx } = options
    const [result] = await (tx === undefined
      ? this.#parts.store.runs.enqueue([run])
      : this.#parts.store.runs.enqueue([run], tx))
    return result as EnqueueOutcome
  }

  /** The jobs that instances run or ran in the past, in order of name, each with the live instances that run it. */
  jobs(): Promise<readonly KnownJob[]> {
    return knownJobs(this.#parts.store)
  }

  /** Counts of runs and instances. Each count stops at a bound and says so, so the cost does not grow with the store. */
  stats(): Promise<Stats> {
    return stats(this.#parts.store)
  }

  /** Finds problems, present and coming ones, and names a fix for each. The cost does not grow with the store. */
  doctor(): Promise<readonly Check[]> {
    return doctor(this.#parts.store, this.#parts.options.clock)
  }

  /** The parts of this instance that have failed several times in a row, such as `ticker`. Their errors are in the log. */
  get stuckParts(): readonly string[] {
    return this.#parts.stuckParts()
  }

  /** The sinks that instances of this store cannot reach, each with the start of the outage and the last error. */
  unreachableSinks(): Promise<readonly UnreachableSink[]> {
    return unreachableSinks(this.#parts.store)
  }

  /** Keeps all runs of the store from starting. Ticks are still recorded. */
  async freeze(note?: string): Promise<void> {
    if (note !== undefined) checkText(note, 'the note of a freeze')
    return this.#parts.store.freeze(note)
  }

  thaw(): Promise<void> {
    return this.#parts.store.thaw()
  }

  frozen(): Promise<Frozen | undefined> {
    return this.#parts.store.frozen()
  }

  /** Current time on the store's clock (authoritative). */
  async now(): Promise<Date> {
    return new Date(await this.#parts.store.now())
  }

  instances(): Promise<readonly Instance[]> {
    return this.#parts.store.instances.list()
  }

  /** Listens to an event of this process; the returned function removes the listener. */
  on<Name extends EventName>(name: Name, listener: (event: EventMap[Name]) => void): () => void {
    return this.#parts.events.on(name, listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

function isSink(target: string | SinkChoice): target is SinkChoice {
  if (typeof target !== 'object' || target === null) return false
  checkOptions(target, ['to', 'toOptions'], 'the target of enqueue()')
  return true
}
