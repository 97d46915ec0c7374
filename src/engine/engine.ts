/** The machine: four loops and a settler around one store. Every instance runs the same ones; none leads. */
import { type Clock, sleep } from '../core/clock.js'
import type { EngineRole, InstanceInfo } from '../core/instance.js'
import type { Logger } from '../core/logger.js'
import type { PruneRequest, Store, Wake } from '../core/store.js'
import type { TokenFloor } from '../core/token.js'
import type { JobDefinition, SinkDefinition, ThreadedJob } from './definitions.js'
import type { Events } from './events.js'
import type { Health } from './health.js'
import type { BeatThread } from './instances/beat-thread.js'
import { Keeper } from './instances/keeper.js'
import { Membership } from './instances/membership.js'
import { sweeper } from './instances/sweeper.js'
import { Loop } from './loop.js'
import type { Attempt } from './runs/attempt.js'
import { Attempts } from './runs/attempts.js'
import { BurstPriority } from './runs/burst-priority.js'
import { LearningPace, UNPACED } from './runs/claim-pace.js'
import { Dispatcher } from './runs/dispatcher.js'
import { pruner } from './runs/pruner.js'
import { Settler } from './runs/settler.js'
import { Slots } from './runs/slots.js'
import { STOP_WINDOW_MS } from './runs/worker.js'
import { OutageNotes } from './sinks/outage-notes.js'
import { SinkDispatcher } from './sinks/sink-dispatcher.js'
import type { SinkOutage } from './sinks/sink-health.js'
import { ThreadPool } from './threads/thread-pool.js'
import { ticker } from './ticks/ticker.js'

/** Threads for handlers that are modules. */
export interface ThreadOptions {
  /** How many there may be. */
  readonly max: number
  readonly idleMs: number
  readonly memoryMb: number | undefined
}

export interface EngineOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
  readonly health: Health
  readonly floor: TokenFloor
  readonly jobs: ReadonlyMap<string, JobDefinition>
  readonly sinks: ReadonlyMap<string, SinkDefinition>
  readonly storeIdentity: () => string
  readonly roles: readonly EngineRole[]
  readonly leaseMs: number
  readonly heartbeatMs: number
  readonly pollMs: number
  readonly lookaheadMs: number
  readonly batch: number
  readonly concurrency: number
  readonly threads: ThreadOptions
  readonly history: Pick<PruneRequest, 'maxAgeMs' | 'maxRuns'>
  readonly describe: () => Omit<InstanceInfo, 'id'>
  readonly stampKeys: () => Promise<void>
  readonly syncReleases: () => Promise<void>
  readonly beatThread: BeatThread
  /** Whether the event loop is late: then less is claimed. */
  readonly isLoopBusy: () => boolean
}

/** How long a stopping instance tries to write down what its attempts came to. */
const DRAIN_MS = 5_000

type LoopName = 'ticker' | 'dispatcher' | 'thread dispatcher' | 'sink dispatcher' | 'keeper' | 'sweeper' | 'pruner'

export class Engine {
  readonly #options: EngineOptions
  readonly #membership: Membership
  readonly #settler: Settler
  readonly #attempts: Attempts
  readonly #dispatcher: Dispatcher
  readonly #threadDispatcher: Dispatcher
  readonly #threads: ThreadPool
  readonly #sinks: SinkDispatcher
  readonly #notes: OutageNotes
  readonly #keeper: Keeper
  readonly #loops: Readonly<Record<LoopName, Loop>>
  #unsubscribe = () => {}
  #forgetLoss = () => {}
  #hurry = () => {}

  constructor(options: EngineOptions) {
    this.#options = options
    const { store, clock, events, health, leaseMs, batch } = options
    this.#membership = new Membership(store, events, leaseMs, options.describe)
    const burst = new BurstPriority(clock)
    this.#settler = new Settler({ store, clock, health, batch, burst })
    const instance = () => this.#membership.id
    this.#attempts = new Attempts({ ...options, settler: this.#settler, instance })
    const attempts = this.#attempts
    this.#threads = new ThreadPool({ ...options, ...options.threads })
    const shared = { ...options, attempts, threads: this.#threads, slots: new Slots(options.concurrency) }
    const wakeDispatcher = () => this.#loops.dispatcher.wake()
    this.#dispatcher = new Dispatcher({
      ...shared,
      burst,
      starts: (job) => !isThreaded(job),
      pace: clock.nextTurn === undefined ? UNPACED : new LearningPace({ ...options, onFree: wakeDispatcher }),
      onFree: wakeDispatcher,
      onUnknown: () => options.beatThread.turned(this.running),
    })
    this.#threadDispatcher = new Dispatcher({
      ...shared,
      // So few begin at a time that nothing has to wait for them.
      burst: new BurstPriority(clock),
      starts: isThreaded,
      pace: UNPACED,
      concurrency: options.threads.max,
      onFree: () => this.#loops['thread dispatcher'].wake(),
      onUnknown: () => {},
    })
    this.#sinks = new SinkDispatcher({
      ...options,
      attempts,
      isTrusted: () => this.#keeper.isTrusted,
      onFree: () => this.#loops['sink dispatcher'].wake(),
    })
    this.#notes = new OutageNotes({ ...options, outages: () => this.#sinks.outages })
    events.on('instance:joined', () => this.#wakeDispatchers())
    this.#keeper = new Keeper({
      ...options,
      onHurry: () => this.#loops.keeper.wake(),
      membership: this.#membership,
      attempts: () => attempts.all,
      claimsSettled: () => attempts.claimsSettled,
    })
    const wakeDispatchers = () => this.#wakeDispatchers()
    const steps = {
      // A store that hints has said so already.
      ticker: ticker({ ...options, burst, onRecorded: store.supports.wakeups ? () => {} : wakeDispatchers }),
      dispatcher: () => this.#startRuns(this.#dispatcher),
      'thread dispatcher': () => this.#startRuns(this.#threadDispatcher),
      'sink dispatcher': () => this.#startRuns(this.#sinks),
      keeper: () => this.#keeper.keepAlive(),
      sweeper: sweeper({ ...options, instance, onRescued: wakeDispatchers, isInDoubt: () => this.#keeper.isInDoubt }),
      pruner: pruner({ ...options, instance }),
    }
    const loop = (name: keyof typeof steps) => new Loop({ name, clock, health, step: steps[name] })
    this.#loops = {
      ticker: loop('ticker'),
      dispatcher: loop('dispatcher'),
      'thread dispatcher': loop('thread dispatcher'),
      'sink dispatcher': loop('sink dispatcher'),
      keeper: loop('keeper'),
      sweeper: loop('sweeper'),
      pruner: loop('pruner'),
    }
  }

  get instance(): string {
    return this.#membership.id
  }

  /** The sinks that this process cannot reach. */
  get sinkOutages(): readonly SinkOutage[] {
    return this.#sinks.outages
  }

  /** Looks whether the handlers that are modules can run. A module that cannot is an error before anything starts. */
  async check(): Promise<void> {
    const jobs = this.#threadedJobs()
    if (this.#options.roles.includes('run') && jobs.length > 0) await this.#threads.check(jobs)
  }

  /** Ends what runs beside the main thread. */
  close(): Promise<void> {
    return this.#threads.close()
  }

  /** Names what runs on the main thread, for people who look. */
  get running(): string {
    const count = this.#attempts.all.size - this.#threadDispatcher.running
    return runningNames(this.#attempts.all, this.#options.jobs, count)
  }

  start(): void {
    const { roles, store } = this.#options
    this.#unsubscribe = store.subscribe((wake) => this.#wake(wake))
    if (roles.length === 0) return
    this.#forgetLoss = store.onLost?.((why) => this.#keeper.giveUp(why)) ?? this.#forgetLoss
    this.#loops.keeper.start()
    this.#loops.sweeper.start()
    this.#loops.pruner.start()
    if (roles.includes('tick')) this.#loops.ticker.start()
    if (!roles.includes('run')) return
    this.#loops.dispatcher.start()
    if (this.#threadedJobs().length > 0) this.#loops['thread dispatcher'].start()
    if (this.#options.sinks.size === 0) return
    this.#notes.start()
    this.#sinks.open()
    this.#loops['sink dispatcher'].start()
  }

  /**
   * Claims no more, gives what runs its grace, then aborts and releases the rest, so that others take it over at once.
   * Beats go on until the end: nothing is taken over while it is still at work here.
   */
  async stop(graceMs: number): Promise<void> {
    const { clock } = this.#options
    this.#dispatcher.close()
    this.#threadDispatcher.close()
    this.#sinks.close()
    this.#unsubscribe()
    const starting = ['ticker', 'dispatcher', 'thread dispatcher', 'sink dispatcher'] as const
    const stopped = Promise.all(starting.map((name) => this.#loops[name].stop()))
    const finished = stopped.then(() => this.#attempts.idle())
    const hurried = new Promise<void>((resolve) => {
      this.#hurry = resolve
    })
    await within(clock, graceMs, Promise.race([finished, hurried]))
    for (const attempt of this.#attempts.all.values()) attempt.abort('stop', STOP_WINDOW_MS)
    await this.#drain(finished)
    this.#keeper.stop()
    this.#forgetLoss()
    const { keeper, sweeper, pruner } = this.#loops
    const left = Promise.all([keeper.stop(), sweeper.stop(), pruner.stop(), this.#notes.stop()]).then(() =>
      this.#membership.leave(),
    )
    await within(
      clock,
      DRAIN_MS,
      left.catch(() => {
        // The store is out of reach: the lease runs out by itself.
      }),
    )
    await within(clock, DRAIN_MS, this.#sinks.end())
  }

  /** A stop that is under way has no more patience than this. */
  hurry(graceMs: number): void {
    this.#options.clock.after(graceMs, () => this.#hurry())
  }

  async #drain(finished: Promise<void>): Promise<void> {
    const giveUp = new AbortController()
    const cancel = this.#options.clock.after(STOP_WINDOW_MS + DRAIN_MS, () => giveUp.abort())
    const drained = this.#settler.drain(giveUp.signal)
    await within(this.#options.clock, STOP_WINDOW_MS + DRAIN_MS, finished)
    await drained
    cancel()
  }

  /** Nothing is claimed before the instance has joined: the store would not know whom to take it over from. */
  async #startRuns(dispatcher: Dispatcher | SinkDispatcher): Promise<number> {
    return this.#membership.joined ? dispatcher.startRuns() : this.#options.pollMs
  }

  #threadedJobs(): readonly ThreadedJob[] {
    return [...this.#options.jobs.values()].filter(isThreaded)
  }

  #wakeDispatchers(): void {
    this.#loops.dispatcher.wake()
    this.#loops['thread dispatcher'].wake()
    this.#loops['sink dispatcher'].wake()
  }

  #wake(wake: Wake): void {
    if (wake === 'schedules') this.#loops.ticker.wake()
    else if (wake === 'runs') this.#wakeDispatchers()
    else if (wake === 'attempts' && this.#attempts.all.size > 0) this.#loops.keeper.wake()
  }
}

function isThreaded(job: JobDefinition): job is ThreadedJob {
  return typeof job.run !== 'function'
}

const MAX_NAMES = 5

/** The first few of so many on the main thread, by job or sink and run: `resize 1234, resize 1235 and 8 more`. */
function runningNames(
  attempts: ReadonlyMap<string, Attempt>,
  jobs: ReadonlyMap<string, JobDefinition>,
  count: number,
): string {
  const names: string[] = []
  for (const { run } of attempts.values()) {
    if (names.length === MAX_NAMES) break
    const { id, target } = run
    const job = 'job' in target ? jobs.get(target.job) : undefined
    if (job === undefined || !isThreaded(job)) names.push(`${'job' in target ? target.job : target.sink} ${id}`)
  }
  return names.join(', ') + (count > MAX_NAMES ? ` and ${count - MAX_NAMES} more` : '')
}

/** Waits for a promise, but no longer than this. */
async function within(clock: Clock, limitMs: number, promise: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  await Promise.race([promise, sleep(clock, limitMs, done.signal)])
  done.abort()
}
