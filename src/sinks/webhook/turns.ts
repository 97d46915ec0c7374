/**
 * Whose turn it is among those who share the calls of a sink: one that does not answer must not keep all of them. Those
 * are URLs that schedules name, and the hosts of these.
 *
 * - Until one has answered, and again when nothing was heard of it for a while, it has its share of the calls and no more.
 *   Who comes beyond that waits a moment for a word of it, and is then told to come back later.
 * - One that was silent several times in a row is left alone, longer each time, and then asked by one message at a time.
 *   A call that got no answer while others did says nothing of who was asked.
 *
 * What is known is this process's own. It is forgotten when nothing is under way any more to one that has answered.
 */
import { type Clock, systemClock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Delivery, Undelivered } from '../../core/sink.js'

/** Of whom was asked: an answer, silence, or nothing that tells. */
export type Word = 'answered' | 'silent' | 'unknown'

export interface Heard {
  readonly outcome: Delivery
  readonly word: Word
}

/** Somebody's call, until it is over. */
export interface Turn {
  readonly of: string
  readonly since: number
}

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

  /** Calls when it may be called; otherwise the outcome is why not. */
  async take(of: string, url: URL, signal: AbortSignal, call: () => Promise<Heard>): Promise<Heard> {
    const turn = await this.begin(of, url, signal)
    if ('delivered' in turn) return { outcome: turn, word: 'unknown' }
    let word: Word = 'unknown'
    try {
      const heard = await call()
      word = heard.word
      return heard
    } finally {
      this.over(turn, word)
    }
  }

  /** Resolves when it may be called: then `over` has to follow. Otherwise to why not. */
  async begin(of: string, { host }: URL, signal: AbortSignal): Promise<Turn | Undelivered> {
    for (;;) {
      if (signal.aborted) return { delivered: false, untried: true, error: signal.reason }
      const known = this.#known.get(of) ?? this.#add(of)
      const now = this.#clock.monotonic()
      const leftMs = known.quietSince + QUIET_MS - now
      if (known.silences >= SILENCES) {
        if (now < known.resumeAt || known.underWay > 0) return notNow(host, known.resumeAt - now)
      } else if (known.underWay >= this.#share && !(known.hasAnswered && leftMs > 0)) {
        if (leftMs <= 0) return notNow(host, PAUSE_MS)
        await wordOf(known, leftMs, signal, this.#clock)
        continue
      }
      if (known.underWay === 0) known.quietSince = now
      known.underWay += 1
      return { of, since: now }
    }
  }

  /** A call is over: it was answered, there was silence, or it was broken off for reasons of our own. */
  over({ of, since }: Turn, how: Word): void {
    const known = this.#known.get(of)
    if (known === undefined) return
    known.underWay -= 1
    if (how === 'answered') {
      known.quietSince = this.#clock.monotonic()
      known.hasAnswered = true
      known.silences = 0
    } else if (how === 'silent' && !(known.hasAnswered && known.quietSince > since)) this.#silent(known)
    for (const wake of known.waiting) wake()
    if (known.underWay === 0 && known.silences === 0) this.#known.delete(of)
  }

  /** Calls that set out together find the same thing, once. */
  #silent(known: Known): void {
    const now = this.#clock.monotonic()
    if (now < known.resumeAt) return
    known.silences += 1
    known.hasAnswered = false
    if (known.silences < SILENCES) return
    known.resumeAt = now + Math.min(PAUSE_MS * 2 ** (known.silences - SILENCES), LONGEST_PAUSE_MS)
  }

  #add(of: string): Known {
    const known: Known = {
      ...{ underWay: 0, quietSince: this.#clock.monotonic(), hasAnswered: false, silences: 0 },
      ...{ resumeAt: Number.NEGATIVE_INFINITY, waiting: new Set() },
    }
    this.#known.set(of, known)
    for (const [oldest, { underWay }] of this.#known) {
      if (this.#known.size <= MOST_KNOWN) break
      if (underWay === 0) this.#known.delete(oldest)
    }
    return known
  }
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
  return { delivered: false, error, untried: true, retryAfterMs: Math.max(afterMs, PAUSE_MS) }
}
