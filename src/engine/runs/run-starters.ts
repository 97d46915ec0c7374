/** The three dispatchers of an instance: for handlers on the main thread, for handlers in threads, and for sinks. */

import { isThreaded } from '../definitions.js'
import type { EngineOptions } from '../engine-options.js'
import { Loop } from '../loop.js'
import { OutageRecords } from '../sinks/outage-records.js'
import { SinkDispatcher } from '../sinks/sink-dispatcher.js'
import type { ThreadPool } from '../threads/thread-pool.js'
import type { Attempts } from './attempts.js'
import { BurstPriority } from './burst-priority.js'
import { LearningPace, UNPACED } from './claim-pace.js'
import { Dispatcher } from './dispatcher.js'
import { Slots } from './slots.js'

export interface RunStartersOptions extends EngineOptions {
  readonly attempts: Attempts
  readonly threadPool: ThreadPool
  readonly burst: BurstPriority
  /**
   * Whether the instance has joined. Before that no run is claimed: if the process died, the store could not take the
   * run over.
   */
  readonly isJoined: () => boolean
  /** Whether the lease of this instance certainly holds. */
  readonly isTrusted: () => boolean
  /** Called before a handler starts that is not known to be quick, so it may block the event loop. */
  readonly onMayBlock: () => void
}

export class RunStarters {
  readonly #options: RunStartersOptions
  readonly #main: Dispatcher
  readonly #threaded: Dispatcher
  readonly #sinks: SinkDispatcher
  readonly #outageRecords: OutageRecords
  readonly #mainLoop: Loop
  readonly #threadLoop: Loop
  readonly #sinkLoop: Loop

  constructor(options: RunStartersOptions) {
    this.#options = options
    const { clock, threadPool: threads, concurrency } = options
    const shared = { ...options, threads, slots: new Slots(concurrency) }
    const wakeMain = () => this.#mainLoop.wake()
    this.#main = new Dispatcher({
      ...shared,
      starts: (job) => !isThreaded(job),
      pace: clock.nextTurn === undefined ? UNPACED : new LearningPace({ ...options, onFree: wakeMain }),
      onFree: wakeMain,
    })
    this.#threaded = new Dispatcher({
      ...shared,
      // Threads begin only a few runs at a time, so this dispatcher must not delay settling and recording.
      burst: new BurstPriority(clock),
      starts: isThreaded,
      pace: UNPACED,
      concurrency: options.threads.max,
      onFree: () => this.#threadLoop.wake(),
      onMayBlock: () => {},
    })
    this.#sinks = new SinkDispatcher({ ...options, onFree: () => this.#sinkLoop.wake() })
    this.#outageRecords = new OutageRecords({ ...options, outages: () => this.#sinks.outages })
    this.#mainLoop = this.#loop('dispatcher', this.#main)
    this.#threadLoop = this.#loop('thread dispatcher', this.#threaded)
    this.#sinkLoop = this.#loop('sink dispatcher', this.#sinks)
  }

  get inThreads(): number {
    return this.#threaded.running
  }

  start(): void {
    const { jobs, sinks } = this.#options
    this.#mainLoop.start()
    if ([...jobs.values()].some(isThreaded)) this.#threadLoop.start()
    if (sinks.size === 0) return
    this.#outageRecords.start()
    this.#sinks.open()
    this.#sinkLoop.start()
  }

  wake(): void {
    for (const loop of [this.#mainLoop, this.#threadLoop, this.#sinkLoop]) loop.wake()
  }

  /** Stops claiming. Resolves when no claim is in flight. */
  async stopClaiming(): Promise<void> {
    for (const dispatcher of [this.#main, this.#threaded, this.#sinks]) dispatcher.close()
    await Promise.all([this.#mainLoop, this.#threadLoop, this.#sinkLoop].map((loop) => loop.stop()))
  }

  /** Removes the records of sinks that this process could not reach. */
  async removeOutages(): Promise<void> {
    await this.#outageRecords.stop()
  }

  async closeSinks(): Promise<void> {
    await this.#sinks.end()
  }

  #loop(name: string, dispatcher: Dispatcher | SinkDispatcher): Loop {
    const { clock, health, pollMs, isJoined } = this.#options
    return new Loop({ name, clock, health, step: async () => (isJoined() ? dispatcher.startRuns() : pollMs) })
  }
}
