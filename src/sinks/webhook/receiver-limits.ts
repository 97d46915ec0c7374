/**
 * Limits the concurrent calls to receivers that schedules name (URLs and their hosts), so that an unresponsive receiver
 * does not use all calls of a sink.
 *
 * - A receiver may use only its share of the calls until it has answered, and again when it has been quiet for 3 s. A
 *   further message waits a moment for an answer, and is then retried later. A receiver that answers may have all calls.
 * - After three timeouts in a row the receiver gets no calls for a while, longer each time, and then one probe at a
 *   time. A timeout does not count if the receiver answered another call meanwhile.
 *
 *     unknown ──answer──▶ responsive ──3 s without an answer──▶ limited to its share
 *        └──3 timeouts in a row──▶ paused ──pause over──▶ one probe ──answer──▶ responsive
 *
 * Each process has its own state. The state of a responsive receiver is dropped when it has no calls in flight.
 */
import { type Clock, systemClock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Delivery, Undelivered } from '../../core/sink.js'

/** Whether the receiver answered. `unknown` means that this process ended the call before an answer. */
export type Contact = 'answered' | 'silent' | 'unknown'

export interface CallResult {
  readonly outcome: Delivery
  readonly contact: Contact
}

export interface Call {
  readonly receiver: string
  readonly since: number
}

interface State {
  inFlight: number
  /** When the receiver last answered. Without an answer: when its first call in flight began. */
  quietSince: number
  hasAnswered: boolean
  silences: number
  resumeAt: number
  /** Wakes messages that wait for an answer. */
  readonly waiting: Set<() => void>
}

/** A receiver with calls in flight counts as quiet after this long without an answer. */
const QUIET_MS = 3_000
/** The number of timeouts in a row after which a receiver is paused. A single timeout may come from a broken connection. */
export const SILENCES = 3
const PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000
const MOST_RECEIVERS = 10_000

export class ReceiverLimits {
  readonly #share: number
  readonly #most: number
  readonly #clock: Clock
  readonly #states = new Map<string, State>()

  /** `share` is the number of concurrent calls to a receiver that has not answered, `most` to one that has. */
  constructor(share: number, most: number, clock: Clock = systemClock) {
    this.#share = Math.max(Math.floor(share), 1)
    this.#most = most
    this.#clock = clock
  }

  /**
   * Calls the receiver within its limits. If the limits forbid a call, the outcome has the reason. `onSlow` is called if
   * the receiver is known to be slow.
   */
  async call(
    receiver: string,
    url: URL,
    { signal, onSlow }: { readonly signal: AbortSignal; readonly onSlow: () => void },
    send: () => Promise<CallResult>,
  ): Promise<CallResult> {
    const call = await this.begin(receiver, url, signal, onSlow)
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

  /**
   * Begins a call that the limits permit; the caller must end it by `end`. Otherwise resolves to an outcome with the reason.
   */
  async begin(
    receiver: string,
    { host }: URL,
    signal: AbortSignal,
    onSlow: () => void = () => {},
  ): Promise<Call | Undelivered> {
    for (;;) {
      if (signal.aborted) return { delivered: false, untried: true, error: signal.reason }
      const state = this.#states.get(receiver) ?? this.#add(receiver)
      const now = this.#clock.monotonic()
      const leftMs = state.quietSince + QUIET_MS - now
      if (state.silences > 0) onSlow()
      if (state.silences >= SILENCES) {
        if (now < state.resumeAt || state.inFlight > 0) return notNow(host, state.resumeAt - now)
      } else if (state.inFlight >= (state.hasAnswered && leftMs > 0 ? this.#most : this.#share)) {
        if (leftMs <= 0) return notNow(host, PAUSE_MS)
        onSlow()
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

  /** Counts a timeout. Timeouts during a pause do not count, because their calls began before it. */
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
