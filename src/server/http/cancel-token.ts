import { whileAuthorised } from '../security/guard.js'
import { problem } from './problem.js'
import type { ServerContext } from './route.js'

/** Ends a long request when the service stops, or when its caller's token is revoked or expires. */
export class CancelToken {
  readonly #closing: AbortSignal
  #isAllowed = true
  readonly end: () => void

  constructor(c: ServerContext) {
    this.#closing = c.env.closing
    this.end = whileAuthorised(c, () => {
      this.#isAllowed = false
    })
  }

  check(): void {
    if (this.#closing.aborted)
      throw problem(503, 'STOPPING', 'the service is stopping: send the request for the rest again')
    if (!this.#isAllowed)
      throw problem(401, 'UNAUTHENTICATED', 'the token was revoked or has expired during the request')
  }
}
