/**
 * Messages of calls that did not reach the sink. They wait until another message shows whether the sink was unreachable
 * or these messages were at fault.
 *
 * A message that failed while the sink was down is remembered as a suspect. If it fails again after other messages were
 * delivered, the message is at fault, and the sink stays reachable.
 */
import type { Attempt } from '../runs/attempt.js'
import type { Undecided } from './sink-call.js'

/** The most suspects to remember. An outage that fails more messages than this is not the fault of a single one. */
const MAX_SUSPECTS = 1_000

export class UndecidedMessages {
  #waiting: readonly Undecided[] = []
  readonly #suspects = new Set<string>()

  get size(): number {
    return this.#waiting.length
  }

  add(messages: readonly Undecided[]): void {
    this.#waiting = [...this.#waiting, ...messages]
  }

  takeAll(): readonly Undecided[] {
    const messages = this.#waiting
    this.#waiting = []
    return messages
  }

  /** Remembers messages that failed while the sink was down. */
  suspect(messages: readonly Undecided[]): void {
    if (messages.length === 0) return
    if (this.#suspects.size + messages.length > MAX_SUSPECTS) this.#suspects.clear()
    for (const { attempt } of messages.slice(0, MAX_SUSPECTS)) this.#suspects.add(attempt.run.id)
  }

  areSuspects(messages: readonly Undecided[]): boolean {
    return messages.length > 0 && messages.every(({ attempt }) => this.#suspects.has(attempt.run.id))
  }

  absolve({ run }: Attempt): void {
    this.#suspects.delete(run.id)
  }
}
