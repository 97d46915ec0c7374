import { whileAllowed } from '../security/guard.js'
import { problem } from './problem.js'
import type { ServerContext } from './route.js'

/** Whether something long may go on: not when the service stops, nor when whoever asked may not ask any more. */
export class Going {
  readonly #closing: AbortSignal
  #isAllowed = true
  readonly end: () => void

  constructor(c: ServerContext) {
    this.#closing = c.env.closing
    this.end = whileAllowed(c, () => {
      this.#isAllowed = false
    })
  }

  check(): void {
    if (this.#closing.aborted) throw problem(503, 'STOPPING', 'the service stops: ask for the rest again')
    if (!this.#isAllowed) throw problem(401, 'UNAUTHENTICATED', 'the token was revoked, or has expired meanwhile')
  }
}
