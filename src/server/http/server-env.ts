import type { Audit, Authorise, Caller, RequestInfo } from '../security/caller.js'
import type { Crowds } from '../security/concurrency-limit.js'

/** What Hono carries through a request. */
export interface ServerEnv {
  readonly Bindings: {
    readonly info: RequestInfo
    readonly audit: Audit
    readonly authorise: Authorise
    readonly crowds: Crowds
    /** Fires when the server closes. */
    readonly closing: AbortSignal
  }
  readonly Variables: {
    /** Set by the guard, on every route that is not open to all. */
    caller: Caller
  }
}
