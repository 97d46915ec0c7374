/**
 * The connection of a sink to its broker. It opens on first use, all callers share it, and it opens again after a loss.
 * While connecting fails, callers fail at once with the reason. Attempts to connect have exponential backoff and
 * jitter, so that a recovering broker does not get all reconnects at once.
 *
 *     none ──deliver──▶ connecting ──▶ connected ──lost, or silent for too long──▶ none
 *                           └──failed──▶ none, and no new attempt before the backoff is over
 *
 * A call that timed out stays in the client's memory until the broker answers it, so the link counts abandoned calls.
 * If there are too many, the link replaces a connection of its own. A client of the user gets no more messages until it
 * has answered some.
 */
import { type Clock, sleep, systemClock } from '../core/clock.js'
import { failure } from '../core/errors.js'
import type { Delivery } from '../core/sink.js'

export interface LinkOptions<Connection> {
  /** The broker's name in errors: `the Kafka cluster`. */
  readonly broker: string
  /** Whether the connection belongs to the sink, which then also ends it, and not to the user. */
  readonly owned: boolean
  /** Connects. The connection must call `lost` when it is no longer usable. */
  connect(lost: () => void): Promise<Connection>
  end(connection: Connection): unknown
  /** How long a call waits for the next outcome of a message before the connection is dropped. Default: no limit. */
  readonly outcomeTimeoutMs?: number
  readonly clock?: Clock
}

/** Sets the outcome of the message at this index. Later calls for the same index are ignored. */
export type Settle = (at: number, outcome: Delivery) => void

interface Slot<Connection> {
  connection: Promise<Connection>
  /** The connection; undefined while connecting. */
  value?: Connection
  /** Calls that timed out and that the client may still hold in memory. */
  abandoned: number
  /** The start of the first call without an answer; undefined after a later call was answered. */
  silentSince?: number | undefined
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000
const MOST_ABANDONED = 50
/** A connection is dropped when none of its calls got an answer for this long. */
const SILENCE_MS = 5_000
/**
 * How long connecting may take before it is given up. It is longer, because a second attempt beside the first would not
 * help.
 */
const CONNECTING_MS = 60_000
/** How long to wait for a connection to close. */
const END_MS = 2_000
const ABANDONED = Symbol('abandoned')

export class Link<Connection> {
  readonly #options: LinkOptions<Connection>
  readonly #clock: Clock
  #slot: Slot<Connection> | undefined
  #failures = 0
  #notBefore = Number.NEGATIVE_INFINITY
  #reason: unknown

  constructor(options: LinkOptions<Connection>) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  async open(): Promise<void> {
    await this.get()
  }

  /** Resolves to the connection. Rejects when connecting fails, and at once during the backoff. */
  async get(): Promise<Connection> {
    return this.#current().connection
  }

  async close(): Promise<void> {
    const slot = this.#slot
    this.#slot = undefined
    this.#notBefore = Number.NEGATIVE_INFINITY
    await this.#end(slot)
  }

  /** Drops a connection that is no longer usable. */
  lose(connection: Connection): void {
    if (this.#slot?.value === connection) this.#drop(this.#slot)
  }

  /**
   * One call of a sink's `deliver`. Resolves to an outcome for each message once `send` is done or the signal fires. Without a
   * connection, or when `send` throws, messages without an outcome get `unreachable`.
   */
  async deliver(
    count: number,
    signal: AbortSignal,
    send: (connection: Connection, settle: Settle) => Promise<unknown>,
  ): Promise<Delivery[]> {
    if (count === 0) return []
    const outcomes = new Array<Delivery | undefined>(count).fill(undefined)
    const startedAt = this.#clock.monotonic()
    let rest: Delivery | undefined
    let slot: Slot<Connection> | undefined
    const timeout = new OutcomeTimeout(this.#clock, this.#options.outcomeTimeoutMs)
    try {
      slot = this.#current()
      const work = slot.connection.then((connection) => {
        timeout.restart()
        return send(connection, (at, outcome) => {
          timeout.restart()
          outcomes[at] ??= outcome
        })
      })
      await withinTime(work, signal, timeout, slot)
      slot.silentSince = undefined
    } catch (error) {
      if (error !== ABANDONED) rest = { delivered: false, error, unreachable: true }
      else if (outcomes.every((outcome) => outcome === undefined)) {
        rest = { ...this.#unanswered(), unreachable: true }
        if (slot !== undefined) this.#noAnswer(slot, startedAt, timeout)
      } else if (slot !== undefined) slot.silentSince = undefined
    }
    timeout.end()
    return outcomes.map((outcome) => {
      if (outcome !== undefined) return outcome
      rest ??= this.#unanswered()
      return rest
    })
  }

  #current(): Slot<Connection> {
    if (this.#slot !== undefined && this.#slot.abandoned >= MOST_ABANDONED) {
      if (!this.#options.owned) throw this.#unanswered().error
      this.#drop(this.#slot)
    }
    if (this.#slot !== undefined) return this.#slot
    if (this.#clock.monotonic() < this.#notBefore) throw this.#reason
    const slot: Slot<Connection> = { connection: Promise.reject(ABANDONED), abandoned: 0 }
    slot.connection.catch(() => {})
    this.#slot = slot
    slot.connection = this.#connect(slot)
    return slot
  }

  async #connect(slot: Slot<Connection>): Promise<Connection> {
    try {
      slot.value = await this.#options.connect(() => this.#drop(slot))
      this.#failures = 0
      return slot.value
    } catch (error) {
      this.#failures += 1
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (this.#failures - 1), LONGEST_PAUSE_MS)
      this.#notBefore = this.#clock.monotonic() + pauseMs * (0.5 + Math.random() / 2)
      this.#reason = this.#unreachable(error)
      if (this.#slot === slot) this.#slot = undefined
      throw this.#reason
    }
  }

  /** Notes a call without any answer. Drops the connection if that has lasted too long. */
  #noAnswer(slot: Slot<Connection>, since: number, timeout: OutcomeTimeout): void {
    slot.silentSince ??= since
    const mostMs = slot.value === undefined ? CONNECTING_MS : SILENCE_MS
    const isTimedOut = timeout.isOver && this.#options.owned
    if (isTimedOut || this.#clock.monotonic() - slot.silentSince >= mostMs) this.#drop(slot)
  }

  #drop(slot: Slot<Connection>): void {
    if (this.#slot === slot) this.#slot = undefined
    void this.#end(slot)
  }

  /** Errors while closing are ignored: the connection is no longer used. */
  async #end(slot: Slot<Connection> | undefined): Promise<void> {
    if (!this.#options.owned || slot === undefined) return
    const ended = slot.connection.then((connection) => this.#options.end(connection)).catch(() => {})
    const enough = new AbortController()
    await Promise.race([ended, sleep(this.#clock, END_MS, enough.signal)])
    enough.abort()
  }

  #unreachable(cause: unknown): Error {
    const said = cause instanceof Error && cause.message !== '' ? cause.message : String(cause)
    return failure('SINK_UNREACHABLE', `${this.#options.broker} is unreachable: ${said}`, { cause })
  }

  #unanswered(): { readonly delivered: false; readonly error: Error } {
    const error = failure('SINK_UNREACHABLE', `${this.#options.broker} has not answered in time`)
    return { delivered: false, error }
  }
}

/** Fires when no message of a call has got an outcome for a while. */
class OutcomeTimeout {
  readonly #clock: Clock
  readonly #ms: number | undefined
  #cancel = () => {}
  #ended = false
  isOver = false
  onOver = () => {}

  constructor(clock: Clock, ms: number | undefined) {
    this.#clock = clock
    this.#ms = ms
  }

  restart(): void {
    this.#cancel()
    if (this.#ms === undefined || this.#ended) return
    this.#cancel = this.#clock.after(this.#ms, () => {
      this.isOver = true
      this.onOver()
    })
  }

  end(): void {
    this.#ended = true
    this.#cancel()
    this.onOver = () => {}
  }
}

/** Waits for `work` until the signal or the timeout fires. Then the call counts as abandoned. */
function withinTime(
  work: Promise<unknown>,
  signal: AbortSignal,
  timeout: OutcomeTimeout,
  slot: { abandoned: number },
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const abandon = () => {
      signal.removeEventListener('abort', abandon)
      timeout.end()
      slot.abandoned += 1
      const answered = () => {
        slot.abandoned -= 1
      }
      work.then(answered, answered)
      reject(ABANDONED)
    }
    if (signal.aborted) return abandon()
    signal.addEventListener('abort', abandon)
    timeout.onOver = abandon
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abandon))
  })
}
