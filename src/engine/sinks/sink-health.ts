/**
 * Whether this process can reach a sink, and how many messages may be in flight until that is certain.
 *
 *              a call got nothing through           another message fails, or none comes in time
 *   reachable ────────────────────────────▶ doubted ─────────────────────────────────────────────▶ down
 *       ▲                                      │ another message is delivered                       │
 *       └──────────────────────────────────────┴──────────── a probe is delivered ──────────────────┘
 *
 * - **Reachable**: no limit.
 * - **Doubted**: either the sink is unreachable, or the messages of the failed call are at fault. One other message is
 *   sent at once and decides. If it is delivered, the failure counts against the messages of the failed call.
 * - **Down**: logged once. After a pause that grows, one message probes the sink. When it is delivered, four may be in
 *   flight, then sixteen, and so on.
 *
 * A broker that is down for hours therefore costs one probe now and then. All other messages stay in the store and use
 * up no attempts. One bad message can fail its whole batch: by the same rule the batch is tried again in smaller parts,
 * until that message fails alone.
 */
import type { Clock } from '../../core/clock.js'
import { type ErrorRecord, errorRecord } from '../../core/errors.js'
import type { Logger } from '../../core/logger.js'
import { desynchronise, type RetryPolicy } from '../../core/runs/retry-policy.js'
import type { SinkDefinition } from '../definitions.js'
import type { Events } from '../events.js'

/** The longest pause between two probes. */
const MAX_PAUSE_MS = 10_000
/** How long a doubted sink waits for another message before it counts as down. */
const DOUBT_MS = 2_000
/** After each call that reaches the sink, this many times more messages may be in flight. */
const GROWTH = 4

/** A sink that this process cannot reach. Instants are by the clock of this process. */
export interface SinkOutage {
  readonly sink: string
  readonly since: number
  readonly error: ErrorRecord
  /** When the next probe is sent. */
  readonly nextTryAt: number
}

export interface SinkHealthOptions {
  readonly definition: SinkDefinition
  readonly clock: Clock
  readonly log: Logger
  readonly events: Events
}

type State = 'reachable' | 'doubted' | 'down'

export class SinkHealth {
  readonly #options: SinkHealthOptions
  #state: State = 'reachable'
  /** Increases with every failure that counts. A call that began in an earlier epoch proves nothing. */
  #epoch = 0
  /** How many times in a row the sink was unreachable. */
  #failures = 0
  #failingSince = 0
  #resumeAt = 0
  #error: unknown
  #cancelDoubt = () => {}
  /** How many messages may be in flight; finite until the sink is certain to be reachable. */
  #allowance = Number.POSITIVE_INFINITY
  /** Called when a doubt ends without another call. */
  onDecided: () => void = () => {}

  constructor(options: SinkHealthOptions) {
    this.#options = options
  }

  get state(): State {
    return this.#state
  }

  /** The caller reads the epoch when a call begins, and passes it back with the result. */
  get epoch(): number {
    return this.#epoch
  }

  get allowance(): number {
    return this.pauseMs > 0 ? 0 : this.#allowance
  }

  get pauseMs(): number {
    return this.#state === 'down' ? Math.max(this.#resumeAt - this.#options.clock.monotonic(), 0) : 0
  }

  get outage(): SinkOutage | undefined {
    if (this.#state !== 'down') return undefined
    const { clock, definition } = this.#options
    const offset = clock.now() - clock.monotonic()
    const [since, nextTryAt] = [Math.round(this.#failingSince + offset), Math.round(this.#resumeAt + offset)]
    return { sink: definition.name, since, error: errorRecord(this.#error), nextTryAt }
  }

  /** A call did not reach the sink. */
  failed(error: unknown, epoch: number): void {
    if (this.#state === 'reachable') this.#doubt(error)
    // Of calls that were in flight together, only the first failure counts.
    else if (epoch === this.#epoch) this.unreachable(error)
  }

  /** A call reached the sink. */
  reached(epoch: number): void {
    if (this.#allowance === Number.POSITIVE_INFINITY || epoch !== this.#epoch) return
    const { name, batch, concurrency } = this.#options.definition
    this.#allowance *= GROWTH
    if (this.#allowance >= batch * concurrency) this.#allowance = Number.POSITIVE_INFINITY
    this.#cancelDoubt()
    if (this.#state === 'down') this.#recovered(name)
    this.#state = 'reachable'
  }

  /** Marks the sink as down at once. */
  unreachable(error: unknown): void {
    const { clock, definition } = this.#options
    const now = clock.monotonic()
    if (this.#state === 'reachable') this.#failingSince = now
    this.#cancelDoubt()
    this.#fail(error)
    this.#failures += 1
    this.#resumeAt = now + pauseOf(definition, this.#failures, error)
    if (this.#state === 'down') return
    this.#state = 'down'
    this.#lost(definition.name, error)
  }

  close(): void {
    this.#cancelDoubt()
  }

  #doubt(error: unknown): void {
    const { clock } = this.#options
    this.#state = 'doubted'
    this.#failingSince = clock.monotonic()
    this.#fail(error)
    this.#cancelDoubt = clock.after(DOUBT_MS, () => {
      this.unreachable(error)
      this.onDecided()
    })
  }

  #fail(error: unknown): void {
    this.#epoch += 1
    this.#allowance = 1
    this.#error = error
  }

  #lost(sink: string, error: unknown): void {
    const { log, events } = this.#options
    log.warn(
      { sink, err: errorRecord(error) },
      `sink "${sink}" is unreachable: events for it wait in the store; one of them is tried again every few seconds`,
    )
    events.emit('sink:unreachable', { sink, error })
  }

  #recovered(sink: string): void {
    const { clock, log, events } = this.#options
    const downMs = Math.round(clock.monotonic() - this.#failingSince)
    this.#failures = 0
    log.info({ sink, downMs }, `sink "${sink}" can be reached again: events that waited for it are delivered now`)
    events.emit('sink:recovered', { sink, downMs })
  }
}

/**
 * The pause before the next probe: the sink's own backoff, but at most `MAX_PAUSE_MS`, because the messages that wait
 * for the probe have not failed.
 */
function pauseOf({ name, retry }: SinkDefinition, failures: number, error: unknown): number {
  return desynchronise(pauseAfter(retry, failures, error), name, failures)
}

function pauseAfter(retry: RetryPolicy, failures: number, error: unknown): number {
  try {
    const delayMs = retry.delayMs(failures, error)
    return Number.isFinite(delayMs) ? Math.min(Math.max(delayMs, 1), MAX_PAUSE_MS) : MAX_PAUSE_MS
  } catch {
    return MAX_PAUSE_MS
  }
}
