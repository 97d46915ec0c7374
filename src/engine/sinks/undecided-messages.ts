/**
 * Messages of calls that got nothing through. They wait until another message shows whether the sink was unreachable or the
 * messages were at fault.
 *
 * A message that failed while the sink was down is remembered as a suspect. If it fails again as the first message after
 * others got through, it is at fault itself, and does not put the sink in doubt again.
 */
import type { Attempt } from '../runs/attempt.js'
import type { Undecided } from './sink-call.js'

/** No single message is at fault for an outage with more messages in flight than this. */
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

  /** The sink was down when these failed. */
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
