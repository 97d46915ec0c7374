/**
 * Messages of calls that got nothing through, until another message tells whether that was the sink's fault or their own.
 *
 * A message that failed while the sink was down is remembered. When it fails again as the first one after others got
 * through, it is its own fault, and the sink is not doubted again for its sake.
 */
import type { Attempt } from '../runs/attempt.js'
import type { Undecided } from './sink-call.js'

/** An outage with more messages under way than this is no single message's fault. */
const MOST_SUSPECTS = 1_000

export class SinkDoubts {
  #waiting: readonly Undecided[] = []
  readonly #suspects = new Set<string>()

  /** How many messages wait to be decided about. */
  get size(): number {
    return this.#waiting.length
  }

  add(messages: readonly Undecided[]): void {
    this.#waiting = [...this.#waiting, ...messages]
  }

  /** All that wait, and no more. */
  take(): readonly Undecided[] {
    const messages = this.#waiting
    this.#waiting = []
    return messages
  }

  /** The sink was down when these failed. */
  suspect(messages: readonly Undecided[]): void {
    if (messages.length === 0) return
    if (this.#suspects.size + messages.length > MOST_SUSPECTS) this.#suspects.clear()
    for (const { attempt } of messages.slice(0, MOST_SUSPECTS)) this.#suspects.add(attempt.run.id)
  }

  areSuspects(messages: readonly Undecided[]): boolean {
    return messages.length > 0 && messages.every(({ attempt }) => this.#suspects.has(attempt.run.id))
  }

  absolve({ run }: Attempt): void {
    if (this.#suspects.size > 0) this.#suspects.delete(run.id)
  }
}
