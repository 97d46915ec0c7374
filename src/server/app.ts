/** The Hono app: who is asked in which order, and what becomes of errors. */
import { Hono } from 'hono'
import type { Belfry } from '../belfry.js'
import { systemClock } from '../core/clock.js'
import { errorRecord } from '../core/errors.js'
import type { AuditTrail } from './audit/audit-trail.js'
import { problem, problemReply, toProblem } from './http/problem.js'
import { type Reply, toResponse } from './http/reply.js'
import { logRequest } from './http/request-log.js'
import { type Mounting, mount, mountRefusals, type Route } from './http/route.js'
import type { ServerEnv } from './http/server-env.js'
import { auditRoute } from './routes/audit.js'
import { eventsRoute } from './routes/events.js'
import { healthRoutes } from './routes/health.js'
import { jobRoutes } from './routes/jobs.js'
import { lockRoutes } from './routes/locks.js'
import { metricsRoute } from './routes/metrics.js'
import { openApiRoute } from './routes/openapi.js'
import { runRoutes } from './routes/runs.js'
import { scheduleActionRoutes } from './routes/schedule-actions.js'
import { scheduleRoutes } from './routes/schedules.js'
import { scheduleBulkRoutes } from './routes/schedules-bulk.js'
import { scheduleLineRoutes } from './routes/schedules-ndjson.js'
import { sessionRoutes } from './routes/session.js'
import { storeRoutes } from './routes/store.js'
import { gateOf } from './security/authorise.js'
import type { Audit, RequestInfo } from './security/caller.js'
import { crowds } from './security/concurrency-limit.js'
import { type Guard, guard } from './security/guard.js'
import type { ParsedServerOptions } from './server-options.js'

/** Everything that can be asked for. */
export function allRoutes(belfry: Belfry, options: ParsedServerOptions, trail: AuditTrail): readonly Route[] {
  const { basePath, authorise } = options
  const routes = [
    ...scheduleRoutes(belfry),
    ...scheduleActionRoutes(belfry),
    ...scheduleBulkRoutes(belfry, options),
    ...scheduleLineRoutes(belfry, options),
    ...runRoutes(belfry, options),
    ...jobRoutes(belfry),
    ...lockRoutes(belfry),
    ...storeRoutes(belfry),
    eventsRoute(belfry),
    auditRoute(trail),
    metricsRoute(belfry),
    ...sessionRoutes(gateOf(authorise), basePath),
    ...healthRoutes(belfry),
  ]
  return [...routes, openApiRoute(routes, basePath)]
}

/** The whole of it: a request, and what is known of it besides, becomes an answer. */
export function app(
  belfry: Belfry,
  options: ParsedServerOptions,
  trail: AuditTrail,
  closing: AbortSignal,
): (request: Request, info: RequestInfo) => Response | Promise<Response> {
  const audit: Audit = options.audit ? (...entry) => trail.note(...entry) : async () => {}
  const guarding = guard(options)
  const { authorise } = guarding
  const allCrowds = crowds()
  const answering = answeringWith(options, guarding)
  const routes = allRoutes(belfry, options, trail)
  const hono = new Hono<ServerEnv>().basePath(options.basePath)
  mount(hono, routes, { belfry, options }, answering)
  // Apart, so that a request which has its route is matched by that alone.
  const refusals = new Hono<ServerEnv>().basePath(options.basePath)
  mountRefusals(refusals, routes, answering)
  hono.notFound((c) => refusals.fetch(c.req.raw, c.env))
  const nothing = answering(async (c) => {
    throw problem(404, 'NOT_FOUND', `there is nothing at ${c.req.path.slice(0, 200)}`)
  })
  refusals.notFound((c) => nothing(c, async () => {}))
  return (request, info) => hono.fetch(request, { audit, authorise, closing, crowds: allCrowds, info })
}

/**
 * Around every route: whoever may not ask is refused first, whatever was thrown becomes an answer, and there is a line for
 * the log. One function and no chain of middleware, because each link of it costs every request.
 */
function answeringWith({ log }: ParsedServerOptions, { pass, passOpen }: Guard): Mounting {
  return (work, isOpen = false) =>
    async (c) => {
      const startedAt = systemClock.monotonic()
      let reply: Reply
      try {
        checkUrl(c.req.url)
        const passing = isOpen ? passOpen(c) : pass(c)
        if (passing instanceof Promise) await passing
        reply = await work(c)
      } catch (error) {
        const found = toProblem(error)
        if (found.code === 'INTERNAL') {
          log.error({ method: c.req.method, path: c.req.path, err: errorRecord(error) }, 'a request failed')
        }
        reply = problemReply(found, c.req.path)
      }
      logRequest(log, systemClock, c, reply.status, startedAt)
      return toResponse(reply, c.env.info.secure)
    }
}

/** Ids in paths are percent-encoded; what is not well-formed is nobody's id, and no name has control characters. */
function checkUrl(url: string): void {
  if (!url.includes('%')) return
  if (CONTROLS.test(url)) throw problem(400, 'REQUEST_INVALID', 'the URL holds control characters')
  try {
    decodeURIComponent(new URL(url).pathname)
  } catch {
    throw problem(400, 'REQUEST_INVALID', 'the path is not well-formed: percent-encode ids as UTF-8')
  }
}

/** U+0000 to U+001F, U+007F, and U+0080 to U+009F as UTF-8 writes them. */
const CONTROLS = /%(?:[01][0-9a-f]|7f|c2%[89][0-9a-f])/i
