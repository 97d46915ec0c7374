/**
 * What was sent and is not answered yet, oldest first. A list of links, because answers come at any rate and in any order:
 * a set that is emptied and filled with every command makes its table anew each time.
 */
export class UnderWay {
  #first: Sent | undefined
  #last: Sent | undefined

  get oldest(): Sent | undefined {
    return this.#first
  }

  add(sent: Sent): void {
    sent.before = this.#last
    if (this.#last === undefined) this.#first = sent
    else this.#last.after = sent
    this.#last = sent
    sent.isAwaited = true
  }

  /** Whether it was still waited for. */
  delete(sent: Sent): boolean {
    if (!sent.isAwaited) return false
    sent.isAwaited = false
    if (sent.before === undefined) this.#first = sent.after
    else sent.before.after = sent.after
    if (sent.after === undefined) this.#last = sent.before
    else sent.after.before = sent.before
    // A client may hold on to it: not to all that came after it.
    sent.before = undefined
    sent.after = undefined
    return true
  }
}

export class Sent {
  readonly key: string
  readonly at: number
  readonly reject: (error: unknown) => void
  isAwaited = false
  before: Sent | undefined
  after: Sent | undefined

  constructor(key: string, at: number, reject: (error: unknown) => void) {
    this.key = key
    this.at = at
    this.reject = reject
  }
}
