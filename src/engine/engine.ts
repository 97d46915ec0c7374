/**
 * The engine of an instance: loops that record ticks, start runs, send beats and clean up. Every instance runs the same
 * loops, and none is a leader.
 */
import { type Clock, sleep } from '../core/clock.js'
import type { Wake } from '../core/store.js'
import { isThreaded, type JobDefinition } from './definitions.js'
import type { EngineOptions } from './engine-options.js'
import { Keeper } from './instances/keeper.js'
import { Membership } from './instances/membership.js'
import { sweeper } from './instances/sweeper.js'
import { Loop } from './loop.js'
import type { Attempt } from './runs/attempt.js'
import { Attempts } from './runs/attempts.js'
import { BurstPriority } from './runs/burst-priority.js'
import { FailureLog } from './runs/failure-log.js'
import { pruner } from './runs/pruner.js'
import { RunStarters } from './runs/run-starters.js'
import { Settler } from './runs/settler.js'
import { STOP_WINDOW_MS } from './runs/worker.js'
import { ThreadPool } from './threads/thread-pool.js'
import { ticker } from './ticks/ticker.js'

/** How long a stopping instance tries to settle its attempts and to leave the store. */
const DRAIN_MS = 5_000

export class Engine {
  readonly #options: EngineOptions
  readonly #membership: Membership
  readonly #settler: Settler
  readonly #attempts: Attempts
  readonly #threads: ThreadPool
  readonly #starters: RunStarters
  readonly #failureLog: FailureLog
  readonly #keeper: Keeper
  readonly #tickLoop: Loop
  readonly #keeperLoop: Loop
  readonly #sweepLoop: Loop
  readonly #pruneLoop: Loop
  #unsubscribe = () => {}
  #endLosses = () => {}
  #endGrace = () => {}

  constructor(options: EngineOptions) {
    this.#options = options
    const { store, clock, events, leaseMs, threads, beatThread } = options
    const burst = new BurstPriority(clock)
    const instance = () => this.#membership.id
    this.#membership = new Membership(store, events, leaseMs, options.describe)
    this.#settler = new Settler({ ...options, burst })
    this.#attempts = new Attempts({ ...options, settler: this.#settler, instance })
    this.#threads = new ThreadPool({ ...options, ...threads })
    this.#failureLog = new FailureLog(options)
    this.#keeper = new Keeper({
      ...options,
      membership: this.#membership,
      attempts: () => this.#attempts.all,
      claimsSettled: () => this.#attempts.claimsSettled,
      onBeatWanted: () => this.#keeperLoop.wake(),
    })
    this.#starters = new RunStarters({
      ...options,
      burst,
      attempts: this.#attempts,
      threadPool: this.#threads,
      isJoined: () => this.#membership.joined,
      isTrusted: () => this.#keeper.isTrusted,
      onMayBlock: () => beatThread.loopTurned(this.running),
    })
    const wakeStarters = () => this.#starters.wake()
    events.on('instance:joined', wakeStarters)
    // A store with wake-ups sends a hint of new runs itself.
    const onRecorded = store.supports.wakeups ? () => {} : wakeStarters
    const isInDoubt = () => this.#keeper.isInDoubt
    this.#tickLoop = this.#loop('ticker', ticker({ ...options, burst, onRecorded }))
    this.#keeperLoop = this.#loop('keeper', () => this.#keeper.keepAlive())
    this.#sweepLoop = this.#loop('sweeper', sweeper({ ...options, instance, onRescued: wakeStarters, isInDoubt }))
    this.#pruneLoop = this.#loop('pruner', pruner({ ...options, instance }))
  }

  get instance(): string {
    return this.#membership.id
  }

  /** Names the handlers that run on the main thread, for warnings. */
  get running(): string {
    const { all } = this.#attempts
    return runningNames(all, this.#options.jobs, all.size - this.#starters.inThreads)
  }

  /** Loads the modules of handlers in threads, so that a module that cannot run fails the start. */
  async check(): Promise<void> {
    const { jobs, roles } = this.#options
    const threaded = [...jobs.values()].filter(isThreaded)
    if (roles.includes('run') && threaded.length > 0) await this.#threads.check(threaded)
  }

  start(): void {
    const { roles, store } = this.#options
    this.#unsubscribe = store.subscribe((wake) => this.#wake(wake))
    if (roles.length === 0) return
    this.#endLosses = store.onLost?.((why) => this.#keeper.giveUp(why)) ?? this.#endLosses
    for (const loop of [this.#keeperLoop, this.#sweepLoop, this.#pruneLoop]) loop.start()
    if (roles.includes('tick')) this.#tickLoop.start()
    if (roles.includes('run')) this.#starters.start()
  }

  /**
   * Stops claiming, and gives running attempts their grace. The rest is then aborted and released, so that other instances
   * take it over at once. Beats continue until the end, so that no run is taken over while it still runs here.
   */
  async stop(graceMs: number): Promise<void> {
    const { clock } = this.#options
    this.#unsubscribe()
    const stopped = Promise.all([this.#starters.stopClaiming(), this.#tickLoop.stop()])
    const finished = stopped.then(() => this.#attempts.idle())
    const graceOver = new Promise<void>((resolve) => {
      this.#endGrace = resolve
    })
    await within(clock, graceMs, Promise.race([finished, graceOver]))
    for (const attempt of this.#attempts.all.values()) attempt.abort('stop', STOP_WINDOW_MS)
    await this.#drain(finished)
    this.#keeper.stop()
    this.#endLosses()
    await within(clock, DRAIN_MS, this.#leave())
    await within(clock, DRAIN_MS, this.#starters.closeSinks())
  }

  /** Shortens the grace of a stop that is under way. */
  hurry(graceMs: number): void {
    this.#options.clock.after(graceMs, () => this.#endGrace())
  }

  close(): Promise<void> {
    this.#failureLog.close()
    return this.#threads.close()
  }

  async #drain(finished: Promise<void>): Promise<void> {
    const { clock } = this.#options
    const giveUp = new AbortController()
    const cancel = clock.after(STOP_WINDOW_MS + DRAIN_MS, () => giveUp.abort())
    const drained = this.#settler.drain(giveUp.signal)
    await within(clock, STOP_WINDOW_MS + DRAIN_MS, finished)
    await drained
    cancel()
  }

  async #leave(): Promise<void> {
    try {
      const loops = [this.#keeperLoop, this.#sweepLoop, this.#pruneLoop]
      await Promise.all([this.#starters.removeOutages(), ...loops.map((loop) => loop.stop())])
      await this.#membership.leave()
    } catch {
      // The store is unreachable, so the instance's lease ends by expiry.
    }
  }

  #loop(name: string, step: () => Promise<number>): Loop {
    const { clock, health } = this.#options
    return new Loop({ name, clock, health, step })
  }

  #wake(wake: Wake): void {
    if (wake === 'schedules') this.#tickLoop.wake()
    else if (wake === 'runs') this.#starters.wake()
    else if (wake === 'attempts' && this.#attempts.all.size > 0) this.#keeperLoop.wake()
  }
}

async function within(clock: Clock, limitMs: number, promise: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  await Promise.race([promise, sleep(clock, limitMs, done.signal)])
  done.abort()
}

const MAX_NAMES = 5

/** Names the first of `count` attempts on the main thread by job or sink and run: `resize 1234, resize 1235 and 8 more`. */
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
