/**
 * Whose turn it is among receivers that share the calls of a sink: one that does not answer must not keep all of them.
 *
 * - Until a receiver has answered, and again when nothing was heard of it for a while, it has its share of the calls and
 *   no more. Who comes beyond that waits a moment for a word of it, and is then told to come back later.
 * - One that was silent several times in a row is left alone, longer each time, and then asked by one message at a time.
 *
 * What is known is this process's own. It is forgotten when a receiver has answered and nothing is under way to it.
 */
import { type Clock, systemClock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Undelivered } from '../../core/sink.js'

interface Known {
  underWay: number
  /** When something was last heard of it, or waited for. */
  quietSince: number
  hasAnswered: boolean
  /** How often in a row it was silent. */
  silences: number
  resumeAt: number
  /** Wakes those who wait for a word of it. */
  readonly waiting: Set<() => void>
}

/** Nothing was heard of a receiver for so long while it was asked. */
const QUIET_MS = 3_000
/** Connections break: once is no reason to leave a receiver alone. */
export const SILENCES = 3
const PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000
const MOST_KNOWN = 10_000

export class Turns {
  readonly #share: number
  readonly #clock: Clock
  readonly #known = new Map<string, Known>()

  /** `share` is how many calls a receiver may have that has not answered. */
  constructor(share: number, clock: Clock = systemClock) {
    this.#share = Math.max(Math.floor(share), 1)
    this.#clock = clock
  }

  /** Resolves to nothing when the receiver may be called: `left` has to follow. Otherwise to why not. */
  async enter({ host, origin }: URL, signal: AbortSignal): Promise<Undelivered | undefined> {
    for (;;) {
      if (signal.aborted) return { delivered: false, error: signal.reason }
      const known = this.#known.get(origin) ?? this.#add(origin)
      const now = this.#clock.monotonic()
      if (known.silences >= SILENCES) {
        if (now >= known.resumeAt && known.underWay === 0) return begin(known, now)
        return notNow(host, known.resumeAt - now)
      }
      const leftMs = known.quietSince + QUIET_MS - now
      if (known.underWay < this.#share || (known.hasAnswered && leftMs > 0)) return begin(known, now)
      if (leftMs <= 0) return notNow(host, PAUSE_MS)
      await wordOf(known, leftMs, signal, this.#clock)
    }
  }

  /** A call is over: it was answered, there was silence, or it was broken off for reasons of our own. */
  left({ origin }: URL, how: 'answered' | 'silent' | 'unknown'): void {
    const known = this.#known.get(origin)
    if (known === undefined) return
    known.underWay -= 1
    const now = this.#clock.monotonic()
    if (how === 'answered') {
      known.quietSince = now
      known.hasAnswered = true
      known.silences = 0
      // Calls that set out together find the same thing, once.
    } else if (how === 'silent' && now >= known.resumeAt) {
      known.silences += 1
      known.hasAnswered = false
      if (known.silences >= SILENCES) {
        known.resumeAt = now + Math.min(PAUSE_MS * 2 ** (known.silences - SILENCES), LONGEST_PAUSE_MS)
      }
    }
    for (const wake of known.waiting) wake()
    if (known.underWay === 0 && known.silences === 0) this.#known.delete(origin)
  }

  #add(origin: string): Known {
    const known: Known = {
      ...{ underWay: 0, quietSince: this.#clock.monotonic(), hasAnswered: false, silences: 0 },
      ...{ resumeAt: Number.NEGATIVE_INFINITY, waiting: new Set() },
    }
    this.#known.set(origin, known)
    for (const [oldest, { underWay }] of this.#known) {
      if (this.#known.size <= MOST_KNOWN) break
      if (underWay === 0) this.#known.delete(oldest)
    }
    return known
  }
}

function begin(known: Known, now: number): undefined {
  if (known.underWay === 0) known.quietSince = now
  known.underWay += 1
}

/** Resolves when a call to it is over, or nobody waits any more. */
function wordOf({ waiting }: Known, forMs: number, signal: AbortSignal, clock: Clock): Promise<void> {
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
  const error = failure('SINK_UNREACHABLE', `${host} has not answered lately: it is left alone for a while`)
  return { delivered: false, error, retryAfterMs: Math.max(afterMs, PAUSE_MS) }
}
