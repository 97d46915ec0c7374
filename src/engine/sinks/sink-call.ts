/**
 * One call of a sink's `deliver`, with the attempts that it carries.
 *
 * - Crash before the call, in it, or after it and before the settle: the beat stops, the runs are taken over, and are
 *   delivered again with the same ids. Acknowledged and the settle lost: the settler goes on trying while the instance
 *   lives; if it does not, it is the same as a crash.
 * - Paused past the lease: the attempts are lost, and whoever has them now delivers again. What was acknowledged here is
 *   settled all the same: if nobody took the run over, that spares a repetition; if somebody did, it is refused as stale.
 * - Timeout: all are aborted, the signal fires, and who has not answered when the window is over is not waited for.
 * - One of many is cancelled or lost: the others go on. The signal fires when none is left that waits for the answer.
 */
import type { Clock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Delivery, Undelivered } from '../../core/sink.js'
import type { SinkDefinition } from '../definitions.js'
import type { Attempt, AttemptObserver } from '../runs/attempt.js'
import { ABORT_WINDOW_MS } from '../runs/worker.js'
import { noAnswer, sinkMessage } from './sink-outcome.js'

/** How a call ended, as far as the sink itself is concerned. One message that was delivered proves that it is reachable. */
export type CallEnd = { readonly reached: true } | Unreached

export interface Unreached {
  readonly reached: false
  readonly error: unknown
  /** Messages without an outcome: whether the sink failed or one of them did is not known yet. */
  readonly undecided: readonly Undecided[]
}

export interface Undecided {
  readonly attempt: Attempt
  readonly delivery: Undelivered
}

export interface SinkCallOptions {
  readonly definition: SinkDefinition
  readonly clock: Clock
  readonly attempts: readonly Attempt[]
  readonly open: () => Promise<void> | undefined
  readonly storeIdentity: () => string
  /** Told once for each attempt that is not left undecided. */
  readonly onOutcome: (attempt: Attempt, delivery: Delivery) => void
}

export class SinkCall implements AttemptObserver {
  readonly #options: SinkCallOptions
  readonly #controller = new AbortController()
  readonly #open: Set<Attempt>
  #waiting: number
  #giveUp: (end: CallEnd) => void = () => {}

  constructor(options: SinkCallOptions) {
    this.#options = options
    this.#open = new Set(options.attempts)
    this.#waiting = options.attempts.length
  }

  /** Resolves when every attempt has its outcome, or is left undecided. */
  async run(): Promise<CallEnd> {
    const { attempts, clock, definition } = this.#options
    for (const attempt of attempts) attempt.observe(this)
    const cancelTimeout = clock.after(definition.timeoutMs, () => {
      for (const attempt of this.#open) attempt.abort('timeout', ABORT_WINDOW_MS)
    })
    const end = await new Promise<CallEnd>((resolve) => {
      this.#giveUp = resolve
      void this.#call().then(resolve)
    })
    cancelTimeout()
    return end
  }

  aborted(attempt: Attempt): void {
    this.#waiting -= 1
    if (this.#waiting === 0) this.#controller.abort(noAnswer(this.#options.definition, attempt).error)
  }

  /** Nobody waits for the sink any longer than this. */
  fenced(attempt: Attempt): void {
    const answer = noAnswer(this.#options.definition, attempt)
    this.#end(attempt, answer)
    if (this.#open.size === 0) this.#giveUp({ reached: false, error: answer.error, undecided: [] })
  }

  async #call(): Promise<CallEnd> {
    const { definition, attempts, storeIdentity } = this.#options
    let answers: readonly (Delivery | undefined)[]
    try {
      const opening = this.#options.open()
      if (opening !== undefined) await opening
      answers = await definition.sink.deliver(
        attempts.map((attempt) => sinkMessage(attempt, storeIdentity())),
        this.#controller.signal,
      )
      if (!Array.isArray(answers)) {
        throw failure('OPTION_INVALID', `sink "${definition.name}" must answer with a list, one outcome per message`)
      }
    } catch (error) {
      const delivery: Undelivered = { delivered: false, error, unreachable: true }
      return this.#unreached([...this.#open].map((attempt) => ({ attempt, delivery })))
    }
    return this.#hear(answers)
  }

  #hear(answers: readonly (Delivery | undefined)[]): CallEnd {
    const { definition, attempts } = this.#options
    const isReached = answers.some((answer) => answer?.delivered === true)
    const undecided: Undecided[] = []
    for (let at = 0; at < attempts.length; at += 1) {
      const attempt = attempts[at] as Attempt
      const delivery = answers[at] ?? noAnswer(definition, attempt)
      if (!this.#open.has(attempt)) continue
      if (!isReached && delivery.delivered !== true && delivery.unreachable === true) {
        undecided.push({ attempt, delivery })
      } else this.#end(attempt, delivery)
    }
    return undecided.length === 0 ? { reached: true } : this.#unreached(undecided)
  }

  #unreached(undecided: readonly Undecided[]): CallEnd {
    for (const { attempt } of undecided) this.#forget(attempt)
    return { reached: false, error: undecided[0]?.delivery.error, undecided }
  }

  #end(attempt: Attempt, delivery: Delivery): void {
    this.#forget(attempt)
    this.#options.onOutcome(attempt, delivery)
  }

  #forget(attempt: Attempt): void {
    this.#open.delete(attempt)
    attempt.observe(undefined)
    attempt.end()
  }
}
