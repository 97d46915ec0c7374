/**
 * One call of a sink's `deliver`, with the attempts that it carries.
 *
 * What it survives:
 * - A crash before the call, during it, or between it and the settle: the beat stops, other instances take the runs
 *   over, and deliver them again with the same ids.
 * - A lost reply to the settle: the settler retries while the instance lives.
 * - A process that is stopped past its lease: the attempts are lost, and another instance delivers the messages again.
 *   An acknowledgement that arrives late is settled all the same. If no other instance took the run over, this avoids a
 *   second delivery. Otherwise the store refuses it as stale.
 * - A timeout: all attempts are aborted and the signal fires. After the abort window the call ends without the sink's
 *   answer.
 * - One attempt of many is cancelled or lost: the others go on. The signal fires when no attempt waits for the answer.
 */
import type { Clock } from '../../core/clock.js'
import { failure } from '../../core/errors.js'
import type { Delivery, Undelivered } from '../../core/sink.js'
import type { SinkDefinition } from '../definitions.js'
import type { Attempt, AttemptObserver } from '../runs/attempt.js'
import { ABORT_WINDOW_MS } from '../runs/worker.js'
import { noAnswer, sinkMessage } from './sink-outcome.js'

/** Whether the call reached the sink. One delivered message proves it. */
export type CallEnd = { readonly reached: true } | Unreached

export interface Unreached {
  readonly reached: false
  readonly error: unknown
  /** Messages without an outcome yet: either the sink or one of the messages is at fault. */
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
  readonly open: () => Promise<void>
  /** Called at most once: the call waits for a slow receiver, and others need not wait for it. */
  readonly onSlow: () => void
  readonly storeIdentity: () => string
  /** Called once for each attempt that gets an outcome. */
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

  /** After the abort window the call ends without the sink's answer. */
  fenced(attempt: Attempt): void {
    const answer = noAnswer(this.#options.definition, attempt)
    this.#end(attempt, answer)
    if (this.#open.size === 0) this.#giveUp({ reached: false, error: answer.error, undecided: [] })
  }

  async #call(): Promise<CallEnd> {
    const { definition, attempts, storeIdentity, onSlow } = this.#options
    let answers: readonly (Delivery | undefined)[]
    try {
      await this.#options.open()
      answers = await definition.sink.deliver(
        attempts.map((attempt) => sinkMessage(attempt, storeIdentity())),
        this.#controller.signal,
        onSlow,
      )
      if (!Array.isArray(answers)) {
        throw failure('OPTION_INVALID', `sink "${definition.name}" must answer with a list, one outcome per message`)
      }
    } catch (error) {
      const delivery: Undelivered = { delivered: false, error, unreachable: true }
      return this.#unreached([...this.#open].map((attempt) => ({ attempt, delivery })))
    }
    return this.#read(answers)
  }

  #read(answers: readonly (Delivery | undefined)[]): CallEnd {
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
