/**
 * The connection of a sink to its broker: made when it is first needed, once for all who wait for it, and made again after
 * it was lost. While it cannot be made, whoever asks is told why at once; it is tried again after a pause that grows, so
 * that a broker that comes back is not met by a crowd.
 *
 * What a client was given and has not answered stays in its memory, even when nobody waits for the answer any more. So
 * that is counted: a connection of our own with too much of it is replaced, and one of the user's gets nothing more until
 * it has answered.
 */
import { type Clock, sleep, systemClock } from '../core/clock.js'
import { failure } from '../core/errors.js'
import type { Delivery } from '../core/sink.js'

export interface LinkOptions<Connection> {
  /** Which broker, for errors: `the Kafka cluster`. */
  readonly whom: string
  /** Whether `connect` makes a connection of our own, which is ours to end. */
  readonly owned: boolean
  /** `lost` is to be called when the connection is of no use any more. */
  connect(lost: () => void): Promise<Connection>
  end(connection: Connection): unknown
  /** How long a call waits for the next outcome before the connection is given up. By default as long as it may take. */
  readonly patienceMs?: number
  readonly clock?: Clock
}

/** Says how the message at this place fared. The first word counts. */
export type Settle = (at: number, outcome: Delivery) => void

interface Slot<Connection> {
  connection: Promise<Connection>
  /** Once it is there. */
  value?: Connection
  /** Calls that were given up, and that the client may still hold. */
  leftBehind: number
  /** When the first of the calls began that got no answer at all, if none has got one since. */
  silentSince?: number | undefined
}

const FIRST_PAUSE_MS = 100
/** The engine itself asks less and less often: this is for those who come in between. */
const LONGEST_PAUSE_MS = 2_000
const MOST_LEFT_BEHIND = 50
/** A connection on which no call got any answer for so long is as good as lost, whatever it says itself. */
const SILENCE_MS = 5_000
/** One that is still being made has longer: to begin another beside it would not help. */
const CONNECTING_MS = 60_000
/** One that does not end by then is left to itself. */
const END_MS = 2_000
const GIVEN_UP = Symbol('given up')

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

  /** The connection. Rejects when it cannot be made, and at once when that has just been tried. */
  async get(): Promise<Connection> {
    return this.#current().connection
  }

  async close(): Promise<void> {
    const slot = this.#slot
    this.#slot = undefined
    this.#notBefore = Number.NEGATIVE_INFINITY
    await this.#end(slot)
  }

  /** Forgets a connection that is of no use any more. */
  lose(connection: Connection): void {
    if (this.#slot?.value === connection) this.#drop(this.#slot)
  }

  /**
   * One call of a sink's `deliver`: an outcome for each message, as soon as `send` has settled them, or the signal fires.
   * When there is no connection, or `send` throws, the broker is out of reach for what has no outcome yet.
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
    const patience = new Patience(this.#clock, this.#options.patienceMs)
    try {
      slot = this.#current()
      const work = slot.connection.then((connection) => {
        patience.renew()
        return send(connection, (at, outcome) => {
          patience.renew()
          outcomes[at] ??= outcome
        })
      })
      await inTime(work, signal, patience, slot)
      slot.silentSince = undefined
    } catch (error) {
      if (error !== GIVEN_UP) rest = { delivered: false, error, unreachable: true }
      else if (outcomes.every((outcome) => outcome === undefined)) {
        rest = { ...this.#unanswered(), unreachable: true }
        if (slot !== undefined) this.#wasSilent(slot, startedAt, patience)
      } else if (slot !== undefined) slot.silentSince = undefined
    }
    patience.end()
    return outcomes.map((outcome) => {
      if (outcome !== undefined) return outcome
      rest ??= this.#unanswered()
      return rest
    })
  }

  #current(): Slot<Connection> {
    if (this.#slot !== undefined && this.#slot.leftBehind >= MOST_LEFT_BEHIND) {
      if (!this.#options.owned) throw this.#unanswered().error
      this.#drop(this.#slot)
    }
    if (this.#slot !== undefined) return this.#slot
    if (this.#clock.monotonic() < this.#notBefore) throw this.#reason
    const slot: Slot<Connection> = { connection: Promise.reject(GIVEN_UP), leftBehind: 0 }
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

  #wasSilent(slot: Slot<Connection>, since: number, patience: Patience): void {
    slot.silentSince ??= since
    const mostMs = slot.value === undefined ? CONNECTING_MS : SILENCE_MS
    const isOver = patience.isOver && this.#options.owned
    if (isOver || this.#clock.monotonic() - slot.silentSince >= mostMs) this.#drop(slot)
  }

  #drop(slot: Slot<Connection>): void {
    if (this.#slot === slot) this.#slot = undefined
    void this.#end(slot)
  }

  /** How a connection ends is of no interest to anybody, only that it does. */
  async #end(slot: Slot<Connection> | undefined): Promise<void> {
    if (!this.#options.owned || slot === undefined) return
    const ended = slot.connection.then((connection) => this.#options.end(connection)).catch(() => {})
    const enough = new AbortController()
    await Promise.race([ended, sleep(this.#clock, END_MS, enough.signal)])
    enough.abort()
  }

  #unreachable(cause: unknown): Error {
    const said = cause instanceof Error && cause.message !== '' ? cause.message : String(cause)
    return failure('SINK_UNREACHABLE', `${this.#options.whom} cannot be reached: ${said}`, { cause })
  }

  #unanswered(): { readonly delivered: false; readonly error: Error } {
    const error = failure('SINK_UNREACHABLE', `${this.#options.whom} has not answered in time`)
    return { delivered: false, error }
  }
}

/** Runs out when a call has heard nothing for a while. */
class Patience {
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

  renew(): void {
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

/** Waits for work as long as its caller does, and has patience; then it is left behind. */
function inTime(
  work: Promise<unknown>,
  signal: AbortSignal,
  patience: Patience,
  slot: { leftBehind: number },
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      signal.removeEventListener('abort', giveUp)
      patience.end()
      slot.leftBehind += 1
      const answered = () => {
        slot.leftBehind -= 1
      }
      work.then(answered, answered)
      reject(GIVEN_UP)
    }
    if (signal.aborted) return giveUp()
    signal.addEventListener('abort', giveUp)
    patience.onOver = giveUp
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}
