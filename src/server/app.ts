/** The Hono app: authorise, call the route, map errors to problem+json, log the request. */
import { Hono } from 'hono'
import type { Belfry } from '../belfry.js'
import { systemClock } from '../core/clock.js'
import { errorRecord } from '../core/errors.js'
import type { AuditTrail } from './audit/audit-trail.js'
import { nothingAt, pathBelow } from './http/base-path.js'
import { problem, problemReply, toProblem } from './http/problem.js'
import { type Reply, toResponse } from './http/reply.js'
import { requestIdHeader, requestIdOf } from './http/request-id.js'
import { logRequest } from './http/request-log.js'
import { mount, type ServerEnv, type ToHandler } from './http/route.js'
import type { Operations } from './operations/operations.js'
import { allRoutes } from './routes/route-table.js'
import { gateOf } from './security/authorise.js'
import type { Audit, RequestInfo } from './security/caller.js'
import { concurrencyLimits } from './security/concurrency-limit.js'
import { corsHeaders, preflightReply } from './security/cors.js'
import { CpuBudget } from './security/cpu-budget.js'
import { type Guard, guard } from './security/guard.js'
import { ImportPace } from './security/import-pace.js'
import { ServiceSecret } from './security/service-secret.js'
import { Usage } from './security/usage.js'
import { visibleError } from './security/visibility.js'
import type { ParsedServerOptions } from './server-options.js'

export function app(
  belfry: Belfry,
  options: ParsedServerOptions,
  trail: AuditTrail,
  operations: Operations,
  closing: AbortSignal,
): (request: Request, info: RequestInfo) => Response | Promise<Response> {
  const audit: Audit = options.audit ? (...entry) => trail.note(...entry) : async () => {}
  const guarding = guard(options)
  const { authorise } = guarding
  const concurrency = concurrencyLimits()
  const cpu = new CpuBudget(options.limits.cpuMsPerSecond)
  const secret = new ServiceSecret(belfry.records)
  const usage = new Usage(belfry)
  const pace = new ImportPace()
  const toHandler = handlerMaker(options, guarding)
  const hono = new Hono<ServerEnv>({ getPath: (request, at) => pathBelow(at?.env?.basePath ?? '', request) })
  mount(hono, allRoutes(belfry, options, trail, operations), { belfry, options }, toHandler)
  const notFound = toHandler(async (c) => {
    throw nothingAt(new URL(c.req.url).pathname, c.env.basePath)
  })
  hono.notFound((c) => notFound(c, async () => {}) as Promise<Response>)
  const origins = gateOf(options.authorise)?.origins ?? []
  return (request, info) => {
    const preflight = preflightReply(request, origins)
    if (preflight !== undefined) return toResponse(withCors(preflight, request, origins), info.secure)
    const { basePath = options.basePath } = info
    return hono.fetch(request, { audit, authorise, basePath, closing, concurrency, cpu, info, pace, secret, usage })
  }
}

function withCors(reply: Reply, request: Request, origins: readonly string[]): Reply {
  return { ...reply, headers: { ...reply.headers, ...corsHeaders(request, origins) } }
}

function handlerMaker({ log, authorise }: ParsedServerOptions, { pass, passOpen }: Guard): ToHandler {
  const origins = gateOf(authorise)?.origins ?? []
  return (work, isOpen = false) =>
    async (c) => {
      const startedAt = systemClock.monotonic()
      const requestId = requestIdOf(c)
      let reply: Reply
      try {
        checkUrl(c.req.url)
        if (isOpen) passOpen(c)
        else await pass(c)
        if (!isOpen) c.env.cpu.check(c.get('caller'))
        reply = await work(c)
        if (!isOpen && typeof reply.body === 'string') c.env.cpu.chargeAnswer(c.get('caller'), reply.body.length)
      } catch (error) {
        const found = toProblem(visibleError(c.get('caller'), error))
        if (found.code === 'INTERNAL') {
          log.error({ method: c.req.method, path: c.req.path, requestId, err: errorRecord(error) }, 'a request failed')
        }
        reply = problemReply(found, new URL(c.req.url).pathname, requestId)
      }
      reply = { ...reply, headers: { ...reply.headers, ...requestIdHeader(requestId) } }
      logRequest(log, systemClock, c, { status: reply.status, startedAt, requestId })
      return toResponse(withCors(reply, c.req.raw, origins), c.env.info.secure)
    }
}

/** Refuses control characters, which no name may have, and paths that are not percent-encoded UTF-8. */
function checkUrl(url: string): void {
  if (CONTROLS.test(url)) throw problem(400, 'REQUEST_INVALID', 'the URL holds control characters')
  try {
    decodeURIComponent(new URL(url).pathname)
  } catch {
    throw problem(400, 'REQUEST_INVALID', 'the path is not well-formed: percent-encode ids as UTF-8')
  }
}

/** The control characters U+0000–U+001F, U+007F and U+0080–U+009F as percent-encoded UTF-8. */
const CONTROLS = /%(?:[01][0-9a-f]|7f|c2%[89][0-9a-f])/i
