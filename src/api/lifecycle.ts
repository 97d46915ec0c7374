import { setMaxListeners } from 'node:events'
import { failure } from '../core/errors.js'
import { type StopSignal, stopOn } from './process-signals.js'

/** The steps of starting and stopping an instance. */
export interface LifecycleSteps {
  /** All steps of the start that can fail. Nothing runs before they are done. */
  readonly prepare: () => Promise<void>
  readonly run: () => void
  /** Ends the engine if it was started, and closes the store. */
  readonly end: (graceMs: number, wasStarted: boolean) => Promise<void>
  /** Shortens the grace of an `end` that is under way. */
  readonly hurry: (graceMs: number) => void
}

type Phase = 'new' | 'starting' | 'started' | 'stopping' | 'stopped'

/** An instance starts once and stops once. A failed start can be repeated. A stop during a start ends the start. */
export class Lifecycle {
  readonly #steps: LifecycleSteps
  readonly #ending = new AbortController()
  #phase: Phase = 'new'
  #starting: Promise<void> | undefined
  #stopped: Promise<void> | undefined
  #ignoreSignals = () => {}

  constructor(steps: LifecycleSteps) {
    this.#steps = steps
    // Every caller that waits for a run adds a listener: Node.js would report more than ten as a leak.
    setMaxListeners(0, this.#ending.signal)
  }

  /** Fires when the instance stops, to end the waiting of callers. */
  get ending(): AbortSignal {
    return this.#ending.signal
  }

  async start(): Promise<void> {
    this.mustBeNew('start', 'an instance starts once; make another with createBelfry()')
    this.#phase = 'starting'
    this.#starting = this.#prepare()
    await this.#starting
    if (this.#hasEnded()) throw failure('NOT_RUNNING', 'start(): the instance was stopped while it was starting')
    this.#phase = 'started'
    this.#steps.run()
  }

  /** The first call sets the grace; a later one can shorten it. */
  async stop(graceMs: number | undefined, defaultGraceMs: number): Promise<void> {
    if (this.#stopped === undefined) this.#stopped = this.#stop(graceMs ?? defaultGraceMs)
    else if (graceMs !== undefined) this.#steps.hurry(graceMs)
    await this.#stopped
  }

  /**
   * Registers signals that stop the instance. Called when the store opens, because from then on the process may hold a
   * lock, started or not.
   */
  stopOnSignals(signals: readonly StopSignal[], stop: () => Promise<void>): void {
    if (this.#hasEnded()) return
    const ignore = signals.map((signal) => stopOn(signal, stop))
    this.#ignoreSignals = () => {
      for (const ignoreSignal of ignore) ignoreSignal()
    }
  }

  mustBeNew(call: string, hint: string): void {
    if (this.#phase === 'new') return
    throw failure('NOT_RUNNING', `${call}() after ${this.#hasEnded() ? 'stop' : 'start'}(): ${hint}`)
  }

  async #prepare(): Promise<void> {
    try {
      await this.#steps.prepare()
    } catch (error) {
      if (this.#phase === 'starting') this.#phase = 'new'
      throw error
    }
  }

  async #stop(graceMs: number): Promise<void> {
    const wasStarted = this.#phase === 'started'
    this.#phase = 'stopping'
    this.#ignoreSignals()
    this.#ending.abort()
    // The caller of start() gets the error; here we only wait for it to finish.
    await this.#starting?.catch(() => {})
    await this.#steps.end(graceMs, wasStarted)
    this.#phase = 'stopped'
  }

  #hasEnded(): boolean {
    return this.#phase === 'stopping' || this.#phase === 'stopped'
  }
}
