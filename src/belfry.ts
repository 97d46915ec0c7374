/** The composition root: connects a store, the engine and the API. */
import { hostname } from 'node:os'
import { type BelfryOptions, type ParsedOptions, parseOptions } from './api/belfry-options.js'
import { doctor } from './api/health/doctor.js'
import { type Stats, stats } from './api/health/stats.js'
import { type EnqueueOptions, type EnqueueOutcome, newRun } from './api/jobs/enqueue.js'
import { Job } from './api/jobs/job.js'
import { JobCatalogue, jobInfo } from './api/jobs/job-catalogue.js'
import { type JobOptions, parseJob } from './api/jobs/job-options.js'
import { type KnownJob, knownJobs } from './api/jobs/known-jobs.js'
import type { InputOf, OutputOf, StandardSchema } from './api/jobs/standard-schema.js'
import { Lifecycle } from './api/lifecycle.js'
import { located } from './api/located.js'
import type { Lock } from './api/locks/lock.js'
import type { LockOptions } from './api/locks/lock-options.js'
import { Locks } from './api/locks/locks.js'
import { withLock } from './api/locks/with-lock.js'
import { Runs } from './api/runs/runs.js'
import { Declarations } from './api/schedules/declarations.js'
import type { ScheduleInput } from './api/schedules/schedule-input.js'
import { Schedules } from './api/schedules/schedules.js'
import { SinkCatalogue } from './api/sinks/sink-catalogue.js'
import { type UnreachableSink, unreachableSinks } from './api/sinks/unreachable-sinks.js'
import type { Json } from './core/checks/json.js'
import { checkOptions } from './core/checks/known-options.js'
import type { Check } from './core/diagnosis.js'
import { failure } from './core/errors.js'
import type { Instance, InstanceInfo } from './core/instances/instance.js'
import { TokenFloor } from './core/locks/token.js'
import { checkName, checkText } from './core/names/names.js'
import { storeIdentity } from './core/records/store-identity.js'
import type { Frozen, RecordStore, Store } from './core/store.js'
import type { JobDefinition } from './engine/definitions.js'
import { Engine } from './engine/engine.js'
import type { EngineOptions } from './engine/engine-options.js'
import { type EventMap, type EventName, Events } from './engine/events.js'
import { Health } from './engine/health.js'
import { BeatThread } from './engine/instances/beat-thread.js'
import { LoopWatch } from './engine/instances/loop-watch.js'
import { LockKeeper } from './engine/locks/lock-keeper.js'
import { Metrics } from './engine/metrics/metrics.js'
import { measured } from './engine/store/measured.js'
import { openedOnUse } from './engine/store/opened-on-use.js'
import { type Duration, durationMs } from './time/duration.js'

/** The engine's options that come from the API. */
type EngineWiring = 'jobs' | 'isLoopBusy' | 'storeIdentity' | 'describe' | 'stampKeys' | 'syncReleases'

export function createBelfry(options: BelfryOptions): Belfry {
  return new Belfry(parseOptions(options))
}

export class Belfry implements AsyncDisposable {
  readonly schedules: Schedules
  readonly runs: Runs
  readonly locks: Locks
  /** Small records that services keep in the store: tokens, an audit trail. */
  readonly records: RecordStore
  /** Counters and histograms, for a metrics page. */
  readonly metrics: Metrics
  readonly #options: ParsedOptions
  readonly #store: Store
  readonly #events: Events
  readonly #sinks: SinkCatalogue
  readonly #catalogue: JobCatalogue
  /** Those of the defined jobs that this instance runs. */
  readonly #runnable = new Map<string, JobDefinition>()
  readonly #declarations: Declarations
  readonly #engine: Engine
  readonly #beatThread: BeatThread
  readonly #loopWatch: LoopWatch
  readonly #lifecycle: Lifecycle
  readonly #endWarnings: () => void = () => {}
  /** The store's identity, for the ids of messages; known once the store is open. */
  #identity = ''

  /** Use `createBelfry`. */
  constructor(options: ParsedOptions) {
    const { clock, log, app, release, sinks } = options
    this.#options = options
    this.#lifecycle = new Lifecycle({
      prepare: () => this.#prepare(),
      run: () => this.#run(),
      end: (graceMs, wasStarted) => this.#end(graceMs, wasStarted),
      hurry: (graceMs) => this.#engine.hurry(graceMs),
    })
    const events = new Events(log)
    this.#events = events
    this.metrics = new Metrics(events)
    if (options.roles.includes('run')) this.metrics.expectSinks(sinks.keys())
    const store = openedOnUse(options.store, measured(options.store, this.metrics, clock), () =>
      this.#lifecycle.stopOnSignals(options.signals, () => this.stop()),
    )
    this.#store = store
    this.#endWarnings = store.onWarning?.((message) => log.warn({}, message)) ?? this.#endWarnings
    this.records = store.records
    const { keyPrefix } = options.store
    if (keyPrefix !== undefined) for (const { sink } of sinks.values()) sink.reserve?.(keyPrefix)
    this.#sinks = new SinkCatalogue(store, clock, sinks, options.hasSinks)
    this.#catalogue = new JobCatalogue(store, clock, log, this.#sinks)
    this.#declarations = new Declarations(store, app, release)
    this.schedules = new Schedules(store, this.#catalogue, options.graceMs)
    this.runs = new Runs(store, clock, this.#lifecycle.ending)
    const shared = { ...options, store, events, health: new Health(clock, log, events), floor: new TokenFloor(clock) }
    this.#loopWatch = new LoopWatch({
      ...{ clock, log, observe: (ms) => this.metrics.observe('belfry_event_loop_delay_ms', {}, ms) },
      running: () => this.#engine.running,
      onTurn: (running) => this.#beatThread.loopTurned(running),
    })
    this.#beatThread = new BeatThread({ ...shared, onStart: () => this.#loopWatch.start() })
    this.#engine = this.#composeEngine({ ...shared, beatThread: this.#beatThread })
    const keeper = new LockKeeper({ ...shared, beatThread: this.#beatThread })
    this.locks = new Locks({ ...shared, keeper, instance: () => this.#engine.instance })
  }

  /** The id of this instance. It changes when the store declares the instance dead and it rejoins. */
  get instance(): string {
    return this.#engine.instance
  }

  /** Defines a job. Types flow from its schema to the handler and to `enqueue`. */
  job<Schema extends StandardSchema>(
    name: string,
    options: JobOptions<OutputOf<Schema>> & { readonly payload: Schema },
  ): Job<InputOf<Schema>>
  job<Payload = Json>(
    name: string,
    options: JobOptions<Payload> & { readonly payload?: undefined },
  ): Job<null extends Payload ? Payload | undefined : Payload>
  job(name: string, options: JobOptions<never> & { readonly payload?: StandardSchema | undefined }): Job<never> {
    this.#lifecycle.mustBeNew('job', 'define jobs before start()')
    const definition = parseJob(name, options)
    this.#catalogue.add(definition)
    if (this.#options.jobs?.includes(name) ?? true) this.#runnable.set(name, definition)
    return new Job(definition, this.#catalogue, this.#store)
  }

  /** Declares a schedule in code, which is put when the instance starts. For other schedules use `schedules.put`. */
  schedule<Input = unknown>(id: string, input: ScheduleInput<Input>): void {
    this.#lifecycle.mustBeNew('schedule', 'declare schedules before start(), or use schedules.put()')
    checkName(id, 'schedule id')
    this.#declarations.add(id, input)
  }

  /** Opens the store, puts the declared schedules, and begins to record ticks and run jobs. */
  async start(): Promise<void> {
    await this.#lifecycle.start()
  }

  /** Stops claiming, and gives running work its grace. Then aborts and releases the rest, and releases all locks. */
  async stop(options: { readonly grace?: Duration } = {}): Promise<void> {
    checkOptions(options, ['grace'], 'stop()')
    const { grace } = options
    const graceMs = grace === undefined ? undefined : located('stop(): grace', () => durationMs(grace))
    await this.#lifecycle.stop(graceMs, this.#options.stopGraceMs)
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
   * Makes a run of a job by the job's name. If this instance does not have the job's code, the payload is not checked,
   * and an instance that has the code stamps the exclusive key.
   */
  async enqueue(job: string, payload?: unknown, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    const run = await newRun(this.#catalogue, checkName(job, 'job name'), payload, options)
    const { tx } = options
    const [result] = await (tx === undefined ? this.#store.runs.enqueue([run]) : this.#store.runs.enqueue([run], tx))
    return result as EnqueueOutcome
  }

  /** The jobs that instances run or ran in the past, in order of name, each with the live instances that run it. */
  jobs(): Promise<readonly KnownJob[]> {
    return knownJobs(this.#store)
  }

  /** Counts of runs and instances. Each count stops at a bound and says so, so the cost does not grow with the store. */
  stats(): Promise<Stats> {
    return stats(this.#store)
  }

  /** Finds problems, present and coming ones, and names a fix for each. The cost does not grow with the store. */
  doctor(): Promise<readonly Check[]> {
    return doctor(this.#store, this.#options.clock)
  }

  /** The sinks that instances of this store cannot reach, each with the start of the outage and the last error. */
  unreachableSinks(): Promise<readonly UnreachableSink[]> {
    return unreachableSinks(this.#store)
  }

  /** Keeps all runs of the store from starting. Ticks are still recorded. */
  async freeze(note?: string): Promise<void> {
    if (note !== undefined) checkText(note, 'the note of a freeze')
    return this.#store.freeze(note)
  }

  thaw(): Promise<void> {
    return this.#store.thaw()
  }

  frozen(): Promise<Frozen | undefined> {
    return this.#store.frozen()
  }

  /** Current time on the store's clock (authoritative). */
  async now(): Promise<Date> {
    return new Date(await this.#store.now())
  }

  instances(): Promise<readonly Instance[]> {
    return this.#store.instances.list()
  }

  /** Listens to an event of this process; the returned function removes the listener. */
  on<Name extends EventName>(name: Name, listener: (event: EventMap[Name]) => void): () => void {
    return this.#events.on(name, listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #composeEngine(shared: Omit<EngineOptions, EngineWiring>): Engine {
    return new Engine({
      ...shared,
      jobs: this.#runnable,
      isLoopBusy: () => this.#loopWatch.isBusy,
      storeIdentity: () => this.#identity,
      describe: () => this.#describe(),
      stampKeys: () => this.#catalogue.stampKeys(),
      syncReleases: () => this.#declarations.sync(),
    })
  }

  async #prepare(): Promise<void> {
    this.#checkJobs()
    await this.#engine.check()
    await this.#store.open()
    if (this.#options.sinks.size > 0) this.#identity = await storeIdentity(this.#store.records)
    await this.#declarations.check((id, input, app) => this.schedules.parse(id, input, app))
    await this.#declarations.sync()
  }

  #run(): void {
    this.#loopWatch.start()
    this.#engine.start()
  }

  async #end(graceMs: number, wasStarted: boolean): Promise<void> {
    if (wasStarted) await this.#engine.stop(graceMs)
    await this.#engine.close()
    await this.locks.close()
    this.#loopWatch.stop()
    await this.#beatThread.stop()
    this.#endWarnings()
    await this.#store.close()
  }

  /** How this instance appears in lists, and which jobs and sinks it serves. */
  #describe(): Omit<InstanceInfo, 'id'> {
    const { app, release, roles, clock } = this.#options
    const { hash } = this.#declarations
    const served = roles.includes('run') ? [...this.#runnable.values()].map(jobInfo) : []
    const sinks = roles.includes('run') ? this.#sinks.infos() : []
    return {
      host: hostname(),
      pid: process.pid,
      zoneData: process.versions.tz ?? 'unknown',
      clockAt: Math.round(clock.now()),
      jobs: served,
      ...(sinks.length > 0 ? { sinks } : {}),
      ...(app === undefined ? {} : { app }),
      ...(release === undefined ? {} : { release }),
      ...(hash === undefined ? {} : { declarations: hash }),
    }
  }

  #checkJobs(): void {
    const unknown = this.#options.jobs?.find((name) => !this.#catalogue.jobs.has(name))
    if (unknown === undefined) return
    throw failure(
      'JOB_UNKNOWN',
      `jobs names "${unknown}", which is not defined: define it with belfry.job() before start()`,
    )
  }
}
