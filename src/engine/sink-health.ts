/**
 * Whether a sink can be reached, as far as this process knows, and how much may be tried until that is certain.
 *
 * A sink that is out of reach is left alone for a while, longer each time, then asked with one message; when that gets
 * through, with two, four, and so on. So a broker that is down for hours costs one message now and then, not a claim and
 * a settle for all that wait for it, which stay where they are: in the store. A batch that fails because of one message
 * in it is divided by the same rule, until that message fails alone.
 */
import type { Clock } from '../core/clock.js'
import { type ErrorRecord, errorRecord } from '../core/errors.js'
import type { Logger } from '../core/logger.js'
import { desynchronise, type RetryPolicy } from '../core/retry.js'
import type { Events } from './events.js'
import type { CallEnd } from './sink-call.js'
import type { SinkDefinition } from './work.js'

/** However long it has been away, it is asked this often. */
const MAX_PAUSE_MS = 30_000

/** What this process knows of a sink that it cannot reach. Instants are by the clock of this process. */
export interface SinkOutage {
  readonly sink: string
  readonly since: number
  /** The last error. */
  readonly error: ErrorRecord
  /** When one message is tried again. */
  readonly nextTryAt: number
}

export class SinkHealth {
  readonly #definition: SinkDefinition
  readonly #clock: Clock
  readonly #log: Logger
  readonly #events: Events
  /** How often in a row it was out of reach. */
  #failures = 0
  #downSince = 0
  #resumeAt = 0
  #lastError: unknown
  /** How many messages may be under way; finite while it is in doubt. */
  #allowance = Number.POSITIVE_INFINITY

  constructor(definition: SinkDefinition, clock: Clock, log: Logger, events: Events) {
    this.#definition = definition
    this.#clock = clock
    this.#log = log
    this.#events = events
  }

  get allowance(): number {
    return this.pauseMs > 0 ? 0 : this.#allowance
  }

  /** How long to leave it alone. */
  get pauseMs(): number {
    return this.#failures === 0 ? 0 : Math.max(this.#resumeAt - this.#clock.monotonic(), 0)
  }

  /** Undefined while the sink can be reached, as far as is known. */
  get outage(): SinkOutage | undefined {
    if (this.#failures === 0) return undefined
    const offset = this.#clock.now() - this.#clock.monotonic()
    const [since, nextTryAt] = [this.#downSince + offset, this.#resumeAt + offset].map(Math.round) as [number, number]
    return { sink: this.#definition.name, since, error: errorRecord(this.#lastError), nextTryAt }
  }

  heard(end: CallEnd): void {
    if (end.reached) this.#reached()
    else this.unreachable(end.error)
  }

  unreachable(error: unknown): void {
    // Calls that set out together find the same thing, once.
    if (this.pauseMs > 0) return
    this.#failures += 1
    this.#lastError = error
    this.#allowance = 1
    const now = this.#clock.monotonic()
    const { name, retry } = this.#definition
    this.#resumeAt = now + desynchronise(pauseAfter(retry, this.#failures, error), name, this.#failures)
    if (this.#failures > 1) return
    this.#downSince = now
    this.#log.warn(
      { sink: name, err: errorRecord(error) },
      `sink "${name}" is out of reach: what is meant for it waits in the store; still trying`,
    )
    this.#events.emit('sink:unreachable', { sink: name, error })
  }

  /** What set out before it went away proves nothing. */
  #reached(): void {
    if (this.#allowance === Number.POSITIVE_INFINITY || this.pauseMs > 0) return
    const { name, batch, concurrency } = this.#definition
    this.#allowance *= 2
    if (this.#allowance >= batch * concurrency) this.#allowance = Number.POSITIVE_INFINITY
    if (this.#failures === 0) return
    const downMs = Math.round(this.#clock.monotonic() - this.#downSince)
    this.#failures = 0
    this.#log.info({ sink: name, downMs }, `sink "${name}" answers again`)
    this.#events.emit('sink:recovered', { sink: name, downMs })
  }
}

/** As the sink's own backoff has it, but never for long: what waits behind it has not failed. */
function pauseAfter(retry: RetryPolicy, failures: number, error: unknown): number {
  try {
    const delayMs = retry.delayMs(failures, error)
    return Number.isFinite(delayMs) ? Math.min(Math.max(delayMs, 1), MAX_PAUSE_MS) : MAX_PAUSE_MS
  } catch {
    return MAX_PAUSE_MS
  }
}
