/**
 * Limits the concurrent calls to receivers that schedules name (URLs and their hosts), so that an unresponsive receiver does
 * not use all calls of a sink.
 *
 * - Until a receiver has answered, and again when it has been quiet for 3 s, it may have only its share of the calls. A
 *   further message waits a moment for an answer, and is then retried later.
 * - After three timeouts in a row the receiver gets no calls for a while, longer each time, and then one probe at a time.
 *   A timeout does not count if the receiver answered another call meanwhile.
 *
 *     unknown ──answer──▶ responsive ──3 s without an answer──▶ limited to its share
 *        └──3 timeouts in a row──▶ paused ──pause over──▶ one probe ──answer──▶ responsive
 *
 * The state is per process. It is dropped when a responsive receiver has no calls in flight.
 */
import { type Clock, systemClock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Delivery, Undelivered } from '../../core/sink.js'

/** The receiver answered, did not answer, or the call was broken off by us. */
export type Contact = 'answered' | 'silent' | 'unknown'

export interface CallResult {
  readonly outcome: Delivery
  readonly contact: Contact
}

/** A call in flight. */
export interface Call {
  readonly receiver: string
  readonly since: number
}

interface State {
  inFlight: number
  /** When it last answered, or when its first call in flight began. */
  quietSince: number
  hasAnswered: boolean
  /** Timeouts in a row. */
  silences: number
  resumeAt: number
  /** Wakes messages that wait for an answer. */
  readonly waiting: Set<() => void>
}

/** A receiver with calls in flight is quiet after this long without an answer. */
const QUIET_MS = 3_000
/** Timeouts in a row after which a receiver is paused: a single one may be a broken connection. */
export const SILENCES = 3
const PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000
const MOST_RECEIVERS = 10_000

export class ReceiverLimits {
  readonly #share: number
  readonly #clock: Clock
  readonly #states = new Map<string, State>()

  /** `share` is the number of concurrent calls to a receiver that has not answered. */
  constructor(share: number, clock: Clock = systemClock) {
    this.#share = Math.max(Math.floor(share), 1)
    this.#clock = clock
  }

  /** Calls the receiver if it may be called; otherwise the outcome says why not. */
  async call(receiver: string, url: URL, signal: AbortSignal, send: () => Promise<CallResult>): Promise<CallResult> {
    const call = await this.begin(receiver, url, signal)
    if ('delivered' in call) return { outcome: call, contact: 'unknown' }
    let contact: Contact = 'unknown'
    try {
      const result = await send()
      contact = result.contact
      return result
    } finally {
      this.end(call, contact)
    }
  }

  /** Resolves to a call, which `end` must follow, or to the outcome that says why the receiver may not be called. */
  async begin(receiver: string, { host }: URL, signal: AbortSignal): Promise<Call | Undelivered> {
    for (;;) {
      if (signal.aborted) return { delivered: false, untried: true, error: signal.reason }
      const state = this.#states.get(receiver) ?? this.#add(receiver)
      const now = this.#clock.monotonic()
      const leftMs = state.quietSince + QUIET_MS - now
      if (state.silences >= SILENCES) {
        if (now < state.resumeAt || state.inFlight > 0) return notNow(host, state.resumeAt - now)
      } else if (state.inFlight >= this.#share && !(state.hasAnswered && leftMs > 0)) {
        if (leftMs <= 0) return notNow(host, PAUSE_MS)
        await callEnd(state, leftMs, signal, this.#clock)
        continue
      }
      if (state.inFlight === 0) state.quietSince = now
      state.inFlight += 1
      return { receiver, since: now }
    }
  }

  end({ receiver, since }: Call, contact: Contact): void {
    const state = this.#states.get(receiver)
    if (state === undefined) return
    state.inFlight -= 1
    if (contact === 'answered') {
      state.quietSince = this.#clock.monotonic()
      state.hasAnswered = true
      state.silences = 0
    } else if (contact === 'silent' && !(state.hasAnswered && state.quietSince > since)) this.#countSilence(state)
    for (const wake of state.waiting) wake()
    if (state.inFlight === 0 && state.silences === 0) this.#states.delete(receiver)
  }

  /** Timeouts during a pause do not count: their calls began before it. */
  #countSilence(state: State): void {
    const now = this.#clock.monotonic()
    if (now < state.resumeAt) return
    state.silences += 1
    state.hasAnswered = false
    if (state.silences < SILENCES) return
    state.resumeAt = now + Math.min(PAUSE_MS * 2 ** (state.silences - SILENCES), LONGEST_PAUSE_MS)
  }

  #add(receiver: string): State {
    const state: State = {
      ...{ inFlight: 0, quietSince: this.#clock.monotonic(), hasAnswered: false, silences: 0 },
      ...{ resumeAt: Number.NEGATIVE_INFINITY, waiting: new Set() },
    }
    this.#states.set(receiver, state)
    for (const [oldest, { inFlight }] of this.#states) {
      if (this.#states.size <= MOST_RECEIVERS) break
      if (inFlight === 0) this.#states.delete(oldest)
    }
    return state
  }
}

/** Resolves when a call to the receiver ends, after `forMs`, or when the signal fires. */
function callEnd({ waiting }: State, forMs: number, signal: AbortSignal, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      cancel()
      waiting.delete(wake)
      signal.removeEventListener('abort', wake)
      resolve()
    }
    const cancel = clock.after(forMs, wake)
    waiting.add(wake)
    signal.addEventListener('abort', wake)
  })
}

function notNow(host: string, afterMs: number): Undelivered {
  const error = failure('SINK_UNREACHABLE', `${host} has not answered recently: it gets no calls for a while`)
  return { delivered: false, error, untried: true, retryAfterMs: Math.max(afterMs, PAUSE_MS) }
}
