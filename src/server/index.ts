import { setMaxListeners } from 'node:events'
import type { Belfry } from '../belfry.js'
import { app } from './app.js'
import { AuditTrail } from './audit/audit-trail.js'
import { Operations } from './operations/operations.js'
import type { RequestInfo } from './security/caller.js'
import { parseServerOptions, type ServerOptions } from './server-options.js'

export { type FieldError, Problem, type ProblemOptions, problem, type ServiceCode } from './http/problem.js'
export {
  type NodeHandler,
  type NodeRequest,
  type NodeResponse,
  type RequestExtras,
  toNodeHandler,
} from './node-handler.js'
export { type AuthoriseOptions, type TokenAuthorise, tokenAuthorise } from './security/authorise.js'
export type { Audit, Authorise, Caller, RequestInfo, ServiceRole } from './security/caller.js'
export { type NewToken, type TokenInfo, Tokens } from './security/tokens.js'
export type { LimitOptions, ServerOptions } from './server-options.js'

/** The HTTP API as a Fetch handler, to mount in any app. */
export interface BelfryServer {
  fetch(request: Request, info?: RequestInfo): Promise<Response>
  /**
   * Ends event streams, imports, operations and waiting requests. Resolves when the audit trail holds all changes made so far. Requests
   * that end later may add entries, so call it again after the last request. Belfry itself keeps running.
   */
  close(): Promise<void>
}

export function createServer(belfry: Belfry, options: ServerOptions = {}): BelfryServer {
  const closing = new AbortController()
  // Every event stream, import and waiting request adds a listener: Node would report more than ten as a leak.
  setMaxListeners(0, closing.signal)
  const parsed = parseServerOptions(options)
  const trail = new AuditTrail(belfry.records, parsed.log)
  const operations = new Operations(belfry, parsed.log)
  const answer = app(belfry, parsed, trail, operations, closing.signal)
  return {
    fetch: (request, info = {}) => Promise.resolve(answer(request, info)),
    async close() {
      closing.abort()
      await operations.settled()
      await trail.settled()
    },
  }
}
