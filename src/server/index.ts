import type { Belfry } from '../belfry.js'
import { app } from './app.js'
import type { RequestInfo } from './caller.js'
import { parseServerOptions, type ServerOptions } from './server-options.js'

export type { Audit, Authorise, Caller, RequestInfo, ServiceRole } from './caller.js'
export { type FieldError, Problem, type ProblemOptions, problem, type ServiceCode } from './problem.js'
export { type AuthoriseOptions, type TokenAuthorise, tokenAuthorise } from './security/authorise.js'
export { type NewToken, type TokenInfo, Tokens } from './security/tokens.js'
export type { LimitOptions, ServerOptions } from './server-options.js'

/** The HTTP API as a Fetch handler, to mount in any app. */
export interface BelfryServer {
  fetch(request: Request, info?: RequestInfo): Promise<Response>
  /** Ends what is open: event streams, imports, waiting requests. Belfry itself goes on. */
  close(): Promise<void>
}

export function createServer(belfry: Belfry, options: ServerOptions = {}): BelfryServer {
  const closing = new AbortController()
  const hono = app(belfry, parseServerOptions(options), closing.signal)
  return {
    fetch: async (request, info = {}) => hono.fetch(request, { info }),
    close: async () => closing.abort(),
  }
}
