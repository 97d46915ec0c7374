/**
 * Watches over a connection while it owes an answer. A statement of a handler may take an hour, so it has no limit of its
 * own. But when the connection has been silent for a while, the server is asked over another one: a backend that works
 * on the statement is waited for. A backend that does not (it has answered, it never got the statement, it is gone) means
 * that the connection swallows what is sent over it.
 *
 * The answer may be on its way at the moment of the look, so one look decides nothing. The connection is silent when a
 * second look, a moment later, finds the backend unchanged and the answer still missing.
 */
import type { Clock } from '../../../core/clock.js'

export interface AnswerWatchOptions {
  readonly clock: Clock
  /** After how long without an answer the server is asked. */
  readonly limitMs: () => number
  /** What the server says; undefined while it works on the statement. */
  readonly look: () => Promise<string | undefined>
  /** Told once. */
  readonly onSilent: () => void
}

/** Long enough for an answer that was on its way, short beside any lease. */
const LOOK_AGAIN_MS = 500

export class AnswerWatch {
  readonly #options: AnswerWatchOptions
  #owed = 0
  /** Grows with each answer, and with the end: what was seen before is out of date. */
  #turn = 0
  #seen: string | undefined
  #cancel = () => {}

  constructor(options: AnswerWatchOptions) {
    this.#options = options
  }

  /** Watches until this is answered, one way or the other. */
  during<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const answered = this.sent()
    return answer.finally(answered)
  }

  /** A statement was sent; to be called back when it is answered. */
  sent(): () => void {
    this.#owed += 1
    if (this.#owed === 1) this.#begin()
    return () => {
      this.#owed -= 1
      this.#begin()
    }
  }

  end(): void {
    this.#owed = Number.NEGATIVE_INFINITY
    this.#begin()
  }

  #begin(): void {
    this.#turn += 1
    this.#seen = undefined
    this.#cancel()
    if (this.#owed > 0) this.#lookIn(this.#options.limitMs())
  }

  #lookIn(delayMs: number): void {
    this.#cancel = this.#options.clock.after(delayMs, () => void this.#look())
  }

  async #look(): Promise<void> {
    const turn = this.#turn
    const { look, limitMs, onSilent } = this.#options
    // A server that cannot be asked proves nothing: if that lasts, the lease runs out.
    const seen = await look().catch(() => undefined)
    if (turn !== this.#turn) return
    if (seen !== undefined && seen === this.#seen) {
      this.end()
      return onSilent()
    }
    this.#seen = seen
    this.#lookIn(seen === undefined ? limitMs() : LOOK_AGAIN_MS)
  }
}
