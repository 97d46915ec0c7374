import type { Audit, Caller, RequestInfo } from './caller.js'
import type { Crowds } from './security/crowd.js'

/** What Hono carries through a request. */
export interface ServerEnv {
  readonly Bindings: { readonly info: RequestInfo }
  readonly Variables: {
    /** Set by the guard, on every route that is not open to all. */
    caller: Caller
    audit: Audit
    /** For answers that go on: calls back once the caller is no longer let in. The returned function ends the watch. */
    whileAllowed: (end: () => void) => () => void
    crowds: Crowds
    /** Fires when the server closes. */
    closing: AbortSignal
  }
}
