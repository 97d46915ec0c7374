import type { Json } from '../core/checks/json.js'
import { type ErrorRecord, errorRecord, failure, quote } from '../core/errors.js'
import type { Logger } from '../core/logger.js'
import type { SkipReason } from '../core/policies.js'
import type { ClaimedRun, SkippedRun } from '../core/store.js'

/** Events that callers can listen to. They are emitted afterwards, so a listener cannot prevent what happened. */
export interface EventMap {
  'ticks:recorded': { readonly recorded: number; readonly skipped: number }
  'run:started': { readonly run: ClaimedRun }
  'run:succeeded': { readonly run: ClaimedRun; readonly durationMs: number; readonly result: Json }
  'run:failed': { readonly run: ClaimedRun; readonly durationMs: number; readonly error: ErrorRecord }
  'run:retrying': {
    readonly run: ClaimedRun
    readonly durationMs: number
    readonly error: ErrorRecord
    readonly delayMs: number
  }
  /** A claim of this process skipped the run instead of starting it. */
  'run:skipped': { readonly run: SkippedRun; readonly reason: SkipReason }
  'run:cancelled': { readonly run: ClaimedRun; readonly durationMs: number }
  /** The stopping instance released the run unfinished. */
  'run:released': { readonly run: ClaimedRun; readonly durationMs: number }
  /** The attempt lost the run before it could settle. */
  'run:stale': { readonly run: ClaimedRun }
  /** Runs of dead instances: `rescued` ones are ready again, `lost` ones failed because they were taken over too often. */
  'runs:taken-over': { readonly rescued: number; readonly lost: number }
  'lock:lost': { readonly name: string; readonly token: number }
  'instance:joined': { readonly instance: string }
  'instance:lost': { readonly instance: string }
  'store:unreachable': { readonly error: unknown }
  'store:recovered': { readonly downMs: number }
  'sink:unreachable': { readonly sink: string; readonly error: unknown }
  'sink:recovered': { readonly sink: string; readonly downMs: number }
}

export type EventName = keyof EventMap

const NAMES: Readonly<Record<EventName, true>> = {
  'ticks:recorded': true,
  'run:started': true,
  'run:succeeded': true,
  'run:failed': true,
  'run:retrying': true,
  'run:skipped': true,
  'run:cancelled': true,
  'run:released': true,
  'run:stale': true,
  'runs:taken-over': true,
  'lock:lost': true,
  'instance:joined': true,
  'instance:lost': true,
  'store:unreachable': true,
  'store:recovered': true,
  'sink:unreachable': true,
  'sink:recovered': true,
}
const EVENTS = Object.keys(NAMES)

type Listener<Name extends EventName> = (event: EventMap[Name]) => void

export class Events {
  readonly #log: Logger
  readonly #listeners = new Map<EventName, Set<Listener<never>>>()

  constructor(log: Logger) {
    this.#log = log
  }

  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    if (!EVENTS.includes(name)) {
      throw failure('OPTION_INVALID', `on(): there is no event ${quote(name)}; there are ${EVENTS.join(', ')}`)
    }
    if (typeof listener !== 'function') {
      throw failure('OPTION_INVALID', `on(): the listener of ${name} is ${quote(listener)}; it must be a function`)
    }
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners)
    listeners.add(listener as Listener<never>)
    return () => void listeners.delete(listener as Listener<never>)
  }

  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    const listeners = this.#listeners.get(name)
    if (listeners === undefined) return
    for (const listener of listeners) {
      try {
        const returned: unknown = (listener as Listener<Name>)(event)
        if (returned instanceof Promise) returned.catch((error: unknown) => this.#logFailure(name, error))
      } catch (error) {
        this.#logFailure(name, error)
      }
    }
  }

  #logFailure(event: EventName, error: unknown): void {
    this.#log.error({ event, err: errorRecord(error) }, 'an event listener failed; it is ignored')
  }
}
